//! The public form of the events of users' keys and definitions, of the boundary, and of the host
//! as a whole.

use super::public;
use crate::wire::values::{ContentDigest, Time};
use domain::definition::DefinitionId;
use domain::difference::Difference;
use domain::egress::Traffic;
use domain::event::{self, BoundaryDecision, Erased, KeptByPurge, ReloadCause, RestoreChoice};
use domain::grant::BucketScope;
use domain::id::{OperationId, TurnId};
use domain::key::KeyId;
use domain::trouble::ServiceTrouble;
use domain::user::{Scope, UserId};
use serde::Serialize;
use std::collections::BTreeSet;

public! {
    BoundaryDecided(it: event::BoundaryDecided) {
        operation_id: Option<OperationId> = it.operation,
        segment: u32,
        definition: DefinitionId,
        user_id: Option<UserId>,
        tool: Option<String>,
        component: Option<String>,
        code: Option<ContentDigest> = it.code.map(ContentDigest),
        grant: Option<ContentDigest> = it.grant.map(ContentDigest),
        #[schema(value_type = Vec<Object>)]
        decisions: Vec<BoundaryDecision>,
        left_out: u64,
        #[schema(value_type = Object)]
        egress: Traffic,
    }
    // What is kept may be shared with others than those who can see this run.
    KeyValueWritten(it: event::KeyValueWritten) {
        operation_id: OperationId = it.operation,
        segment: u32,
        component: String = it.place.component.clone(),
        bucket: String = it.place.bucket.clone(),
        #[schema(value_type = String)]
        scope: BucketScope = it.place.scope,
        keys: usize = it.entries.len(),
    }
    ComponentAdmitted(it: event::ComponentAdmitted) {
        component: String,
        code: ContentDigest = ContentDigest(it.code),
        grant: ContentDigest = ContentDigest(it.grant),
        described: ContentDigest = ContentDigest(it.described),
        #[serde(skip_serializing_if = "Option::is_none")]
        replaces: Option<ContentDigest> = it.replaces.map(ContentDigest),
    }
    // Not the hash: nobody has a use for it.
    KeyIssued(it: event::KeyIssued) {
        key_id: KeyId,
        user_id: UserId,
        name: String,
        scopes: BTreeSet<Scope>,
        issued_by: UserId,
        issued_with: Option<KeyId>,
        issued_at: Time = Time(it.issued_at),
        expires_at: Time = Time(it.expires_at),
    }
    KeyRevoked(it: event::KeyRevoked) {
        key_id: KeyId,
        revoked_by: UserId,
        revoked_at: Time = Time(it.revoked_at),
        reason: Option<String>,
    }
    ConnectorKeyBound(it: event::ConnectorKeyBound) {
        key: String = it.key.to_string(),
        user_id: UserId,
        bound_by: UserId,
    }
    ConnectorKeyUnbound(it: event::ConnectorKeyUnbound) {
        key: String = it.key.to_string(),
        user_id: UserId,
        unbound_by: UserId,
    }
    // What a user says of an agent of theirs is shown with the definition, and to nobody else.
    DefinitionMade(it: event::DefinitionMade) {
        definition: DefinitionId,
        template: DefinitionId,
        user_id: UserId,
    }
    DefinitionRemoved(it: event::DefinitionRemoved) {
        definition: DefinitionId,
        user_id: UserId,
        removed_by: UserId,
    }
    HostRestored(it: event::HostRestored) {
        made_at: Time = Time(it.made_at),
        #[schema(value_type = String)]
        choice: RestoreChoice,
        turns: u64,
        operations: u64,
        inputs: u64,
    }
    OperatorRead(it: event::OperatorRead) {
        user_id: UserId,
        request: String,
        turn_id: Option<TurnId> = it.turn,
    }
    ConfigReloaded(it: event::ConfigReloaded) {
        configuration: ContentDigest = ContentDigest(it.configuration),
        replaces: ContentDigest = ContentDigest(it.replaces),
        #[schema(value_type = String)]
        because: ReloadCause,
        user_id: Option<UserId>,
        #[schema(value_type = Vec<Object>)]
        differences: Vec<Difference>,
        left_out: u64,
        needs_restart: Vec<String>,
    }
    ConfigRefused(it: event::ConfigRefused) {
        configuration: ContentDigest = ContentDigest(it.configuration),
        #[schema(value_type = String)]
        because: ReloadCause,
        user_id: Option<UserId>,
        reason: String,
    }
    ProviderTroubled(it: event::ProviderTroubled) {
        provider: String,
        #[schema(value_type = Object)]
        trouble: ServiceTrouble,
    }
    PurgeBegun(it: event::PurgeBegun) {
        begun_by: UserId,
    }
    Purged(it: event::Purged) {
        purged_by: UserId,
        #[schema(value_type = Object)]
        erased: Erased,
        #[schema(value_type = Object)]
        kept: KeptByPurge,
    }
}
