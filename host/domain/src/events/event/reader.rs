//! The version that states how much of a store's content a program understands, beyond the kinds of
//! events.

/// This program's version as a reader. A store names the oldest reader that it permits: that of the
/// newest program that opened it. An older reader is refused, because it would ignore fields that
/// it does not know, and do what they forbid.
///
/// From the first release on, raise it whenever a field, or a new meaning of its absence, narrows
/// what an agent or a user may do. Examples are a deny, a limit, a mark, an end. A field that only
/// adds information needs no new number. Neither does a new kind of event, which an older program
/// refuses to read. A test pins the fields of authority, so that nobody adds one without
/// considering this number.
///
/// | reader | what an older one would not have seen |
/// |---|---|
/// | 1 | nothing: it is the first |
pub const READER: u64 = 1;

#[cfg(test)]
mod tests {
    use super::READER;
    use crate::access::confirm::Confirm;
    use crate::access::egress::EgressGrant;
    use crate::access::grant::{
        Access, BucketGrant, BucketScope, DirectoryGrant, Grant, GuestLimits, SecretGrant,
    };
    use crate::access::user::Scope;
    use crate::agents::authority::{Ceiling, Denies, Permissions};
    use crate::agents::definition::{Definition, OwnDefinition, OwnLists, SessionPolicy};
    use crate::agents::role::AgentRole;
    use crate::events::event::{
        AgentCreated, ComponentAdmitted, ConnectorKeyBound, ConnectorKeyUnbound, DefinitionMade,
        InputAccepted, KeyIssued, KeyRevoked, NoteRemembered, PairingSettled, PreferencesUpdated,
        RoleChanged, RunStarted, SessionOpened, Source, TriggerDefined, TriggerPaused,
        TriggerRemoved, TurnCommitted, UserAssigned, UserUnassigned,
    };
    use crate::values::limits::TurnLimits;
    use crate::work::account::Account;
    use crate::work::approval::{Approval, ApprovalAnswered};
    use crate::work::basis::ResolvedConfigDigests;
    use crate::work::budget::Budget;
    use crate::work::operation::{Operation, Settlement};
    use crate::work::trigger::{TriggerSpec, TriggerTarget};
    use serde::de::Visitor;
    use serde::{Deserialize, Deserializer, forward_to_deserialize_any};
    use std::fmt;

    /// A type, and the stored names of its fields or variants.
    type Pinned = (fn() -> Names, &'static str);

    /// The payloads and blobs that carry authority, with the stored names of their fields or
    /// variants, sorted.
    ///
    /// A new field that narrows what an agent or a user may do raises [`READER`], with a row in the
    /// table there. A program that does not know the field would do what it forbids.
    const AUTHORITY: &[Pinned] = &[
        (
            names::<AgentCreated>,
            "agent agent_type config created_at definition denies kind name owner_user_id \
         parent path permissions",
        ),
        (
            names::<UserAssigned>,
            "agent assigned_at assigned_by role user_id",
        ),
        (
            names::<RoleChanged>,
            "agent changed_at changed_by role user_id",
        ),
        (
            names::<UserUnassigned>,
            "agent unassigned_at unassigned_by user_id",
        ),
        (
            names::<SessionOpened>,
            "agent config conversation head model name persona session session_type started_by \
         time user_id",
        ),
        (
            names::<InputAccepted>,
            "input labels message model priority session source time user_id waits_for",
        ),
        (
            names::<RunStarted>,
            "accounts agent base base_message claimed collected compacted compacts component \
         configuration deadline definition denies depth first_step generation hints hops limits model \
         overflow overrides permissions persona priority reply_to resolved_config revision run sections \
         session session_config \
         session_expires_at session_state session_type spawn_depth time untrusted user_id",
        ),
        (
            names::<Operation>,
            "answers approval deadline effect id in_thread key performer place reserved step \
         time_limit_ms",
        ),
        (names::<Approval>, "action call until"),
        (
            names::<ApprovalAnswered>,
            "approved by call operation run time",
        ),
        (
            names::<PreferencesUpdated>,
            "agent preferences untrusted updated_at user_id",
        ),
        (
            names::<NoteRemembered>,
            "about agent id note provenance session time untrusted",
        ),
        (
            names::<Settlement>,
            "active_ms attempts operation outcome own_calls result spent task time untrusted usage",
        ),
        (
            names::<TurnCommitted>,
            "compacts inputs revision session time turn untrusted",
        ),
        (
            names::<ComponentAdmitted>,
            "code component described grant replaces time version",
        ),
        (
            names::<KeyIssued>,
            "expires_at hash issued_at issued_by issued_with key_id name scopes user_id",
        ),
        (names::<KeyRevoked>, "key_id reason revoked_at revoked_by"),
        (names::<TriggerDefined>, "name next_due origin spec time"),
        (
            names::<TriggerSpec>,
            "component configuration deliver enabled events files heartbeat isolated message model \
         priority queue schedule target targets user webhook",
        ),
        (
            names::<TriggerTarget>,
            "agent path persona session smart turn",
        ),
        (names::<TriggerPaused>, "name reason time"),
        (names::<TriggerRemoved>, "by name time"),
        (names::<PairingSettled>, "key time user"),
        (names::<ConnectorKeyBound>, "bound_by key time user_id"),
        (names::<ConnectorKeyUnbound>, "key time unbound_by user_id"),
        (
            names::<DefinitionMade>,
            "definition own template time user_id",
        ),
        (
            names::<OwnDefinition>,
            "color description display_name icon lists settings system_prompt",
        ),
        (
            names::<OwnLists>,
            "agent_allowlist agent_denylist capability_allowlist capability_denylist confirm \
         model_allowlist skill_allowlist skill_denylist tool_allowlist tool_denylist",
        ),
        (names::<AgentRole>, "mentee observer primary shared"),
        (names::<Scope>, "admin keys read write"),
        (
            names::<ResolvedConfigDigests>,
            "ceiling peers settings skills tools",
        ),
        (names::<Ceiling>, "agent agents code grants"),
        (
            names::<Definition>,
            "agentAllowlist agentDenylist agentId agentType apiExposed capabilityAllowlist \
         capabilityDenylist chat color component confirm contextWindowSize description \
         displayName enableStreaming extends external fixedSettings generation icon limits madeBy \
         maxConcurrentMessages maxSessionMessages memory memoryHints messageTimeout model \
         modelAllowlist modelNames operations promptSectionsOff sessionTimeout sessions settings \
         skillAllowlist skillDenylist systemPrompt templateFor toolAllowlist toolDenylist \
         toolExposure type uiVisible widens",
        ),
        (names::<SessionPolicy>, "itemTimeLimitS itemsMax timeLimitS"),
        (names::<Denies>, "agents capabilities confirm tools"),
        (names::<Permissions>, "and capabilities models tools"),
        (
            names::<Grant>,
            "agents confirm directories environment keyValue limits models network secrets",
        ),
        (
            names::<DirectoryGrant>,
            "access allow at bytesMax deny filesMax path",
        ),
        (names::<Access>, "read-only read-write"),
        (
            names::<EgressGrant>,
            "anyHost host methods path ports privateAddresses redirects requestBytesMax \
         responseBytesMax schemes totalMsMax",
        ),
        (names::<BucketGrant>, "access bucket bytesMax keysMax scope"),
        (names::<BucketScope>, "agent component session user"),
        (names::<SecretGrant>, "host port prefix secret slot"),
        (
            names::<GuestLimits>,
            "callsPerMinuteMax concurrencyMax cpuMsMax egressBytesMax logBytesMax \
         memoryBytesMax wallMsMax",
        ),
        (
            names::<TurnLimits>,
            "activeMsMax costMicrosMax openOperationsMax stepsMax tokensMax toolCallsMax",
        ),
        (names::<Account>, "calls cost_micros id tokens"),
        (names::<Budget>, "calls cost_micros tokens"),
    ];

    #[test]
    fn a_new_field_of_authority_raises_the_reader() {
        for (names, pinned) in AUTHORITY {
            let Names { type_name, mut all } = names();
            all.sort_unstable();
            assert_eq!(
                all.join(" "),
                *pinned,
                "`{type_name}` is stored with other fields than reader {READER} knows: if they narrow what \
             somebody may do, raise `READER`; then pin them here"
            );
        }
    }

    /// Serde has no list of these fields. A new one does not compile here; see [`AUTHORITY`].
    const _: fn(&Confirm, &Source) = |confirm, source| {
        let Confirm {
            destructive: _,
            tools: _,
        } = confirm;
        match source {
            Source::Api | Source::Opening => {}
            Source::Trigger {
                trigger: _,
                trigger_event: _,
                quiet: _,
                reply_to: _,
            } => {}
            Source::Connector {
                reply_to: _,
                messages: _,
            } => {}
            Source::Dispatch {
                reply_to: _,
                from: _,
                deadline: _,
                depth: _,
                hops: _,
                priority: _,
                spawn_depth: _,
                budget: _,
                denies: _,
                permissions: _,
                accounts: _,
            } => {}
            Source::LateReply {
                from: _,
                depth: _,
                hops: _,
                spawn_depth: _,
                denies: _,
                permissions: _,
                accounts: _,
                deadline: _,
            } => {}
            Source::Reminder {
                due: _,
                depth: _,
                spawn_depth: _,
                hops: _,
                denies: _,
                permissions: _,
                accounts: _,
                deadline: _,
            } => {}
        }
    };

    /// The name of a stored type, with those of its fields or variants.
    #[derive(Debug)]
    struct Names {
        type_name: &'static str,
        all: Vec<&'static str>,
    }

    /// Returns the names that a type asks for when it is read.
    fn names<T: fmt::Debug + for<'de> Deserialize<'de>>() -> Names {
        T::deserialize(Nothing).unwrap_err()
    }

    /// A deserializer without a value: it fails with the names that it is asked for.
    struct Nothing;

    impl<'de> Deserializer<'de> for Nothing {
        type Error = Names;

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            type_name: &'static str,
            fields: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, Names> {
            Err(Names {
                type_name,
                all: fields.to_vec(),
            })
        }

        fn deserialize_enum<V: Visitor<'de>>(
            self,
            type_name: &'static str,
            variants: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, Names> {
            Err(Names {
                type_name,
                all: variants.to_vec(),
            })
        }

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Names> {
            Err(serde::de::Error::custom("neither fields nor variants"))
        }

        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
            unit unit_struct newtype_struct seq tuple tuple_struct map identifier ignored_any
        }
    }

    impl serde::de::Error for Names {
        fn custom<T: fmt::Display>(_: T) -> Self {
            Self {
                type_name: "no name",
                all: Vec::new(),
            }
        }
    }

    impl std::error::Error for Names {}

    impl fmt::Display for Names {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{}: {:?}", self.type_name, self.all)
        }
    }
}
