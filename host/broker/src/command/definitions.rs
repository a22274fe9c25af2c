//! Definitions that users make of the operator's templates: make, find, remove.
//!
//! Each is an event of the host's stream, and part of the catalogue from then on. It is applied to
//! its template again at every start, and whenever the catalogue is replaced. So rights that the
//! operator withdraws from the template, or from the user, are withdrawn from it too.

use super::agents::default_path;
use super::once::Once;
use super::{By, Definitions, Error, Request};
use crate::boxed::boxed;
use crate::catalogue::Catalogue;
use crate::core::fresh;
use crate::journal::Context;
use crate::purge::rewrite;
use crate::refusals::definition_not_found;
use crate::shared::guards::passed_limit;
use domain::definition::{Definition, DefinitionId, Extended, OwnDefinition, Wider};
use domain::error_code::ErrorCode;
use domain::event::{DefinitionMade, DefinitionRemoved, Event};
use domain::id::Stream;
use domain::json::snake_case;
use domain::refusal::Refusal;
use domain::user::UserId;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Commit, CommitError, DefinitionCounts, Expected, Guard, UserGuard};

/// Number of definitions that one user may have made.
const DEFINITIONS_OF_A_USER_MAX: u64 = 50;
/// Number of definitions that all users together may have made.
pub(crate) const MADE_DEFINITIONS_MAX: usize = 2_000;
/// Maximum bytes of all definitions that users made, as JSON. All of them are in memory.
const MADE_DEFINITIONS_BYTES_MAX: u64 = 32 << 20;

/// A command that makes a definition of a template.
#[derive(Debug, Clone)]
pub struct MakeDefinition {
    /// The template: a definition of the configuration.
    pub template: DefinitionId,
    /// The user's own part of it.
    pub own: OwnDefinition,
    /// The user who owns it.
    pub user: UserId,
    /// A key that makes a repeated request the same request, for seven days.
    pub idempotency_key: Option<String>,
}

impl Definitions<'_> {
    /// Makes a definition from a template. From now on its user can make agents of it.
    ///
    /// # Errors
    /// The template does not exist or is not available to this user; the definition would allow
    /// more than the template; the user has too many.
    #[boxed]
    pub async fn make(&self, command: MakeDefinition) -> Result<Arc<Definition>, Error> {
        let by = By::new(&command.user, command.idempotency_key.as_ref());
        let asked = json!({ "make_definition": command.template, "own": command.own });
        let request = Request::of(by, &asked)?;
        let act = self.make_now(&command, request.as_ref());
        let id: DefinitionId = self
            .requests()
            .once(request.as_ref(), act)
            .await
            .map(Once::either)?;
        Ok(self.get(&command.user, &id)?)
    }

    async fn make_now(
        &self,
        command: &MakeDefinition,
        request: Option<&Request>,
    ) -> Result<DefinitionId, Error> {
        let MakeDefinition {
            template,
            own,
            user,
            ..
        } = command;
        own.check()?;
        // The catalogue that the definition joins is the present one until it has joined.
        let _replacing = self.core.replacing.lock().await;
        let served = self.core.served();
        let template = self.template(user, template)?;
        let id = DefinitionId::of_user(&own.display_name, &fresh::digits());
        let Extended { definition, wider } =
            template.made(id.clone(), user, own).map_err(|unfit| {
                let field = format!("/{}", unfit.key.replace('.', "/"));
                Refusal::new(ErrorCode::Invalid, unfit.message).at(field)
            })?;
        if let Some(wider) = wider.first() {
            return Err(beyond(wider, &template).into());
        }
        // Users who may have no agents at their own paths make none of these either.
        self.access().may_command(user, &default_path(user, &id))?;
        self.has_room_for(own).await?;
        let made = DefinitionMade {
            definition: id.clone(),
            template: template.agent_id.clone(),
            user_id: user.clone(),
            own: own.clone(),
            time: self.core.now(),
        };
        let time = made.time;
        let event = Event::DefinitionMade(Box::new(made));
        let mut commit = Commit::new()
            .guard(Guard::User(UserGuard::DefinitionsAtMost {
                user: user.clone(),
                max: DEFINITIONS_OF_A_USER_MAX - 1,
            }))
            .append(
                Stream::Host,
                Expected::Any,
                vec![Context::by(user, time).event(event)],
            );
        commit.guards.extend(self.access().may_store(user));
        commit.key = request.map(|request| request.answered(&id));
        match self.store().commit(commit).await {
            Ok(_) => {}
            Err(CommitError::Conflict(conflict)) => {
                let refusal = passed_limit(&conflict.clash)
                    .unwrap_or_else(|| too_many("you have", DEFINITIONS_OF_A_USER_MAX));
                return Err(refusal.into());
            }
            Err(error) => return Err(error.into()),
        }
        let next = Catalogue::clone(&served.catalogue).with_made(definition);
        self.core.serving.renew(served.renewed(next, user));
        Ok(id)
    }

    /// Checks that this host has room for one more definition. Definitions that are left out count,
    /// too.
    async fn has_room_for(&self, own: &OwnDefinition) -> Result<(), Error> {
        let made = self.store().made_definitions_size().await?;
        if made.definitions >= MADE_DEFINITIONS_MAX as u64 {
            return Err(too_many("this host has", MADE_DEFINITIONS_MAX).into());
        }
        if made.bytes.saturating_add(own.bytes()) > MADE_DEFINITIONS_BYTES_MAX {
            let message = format!(
                "the definitions that were made of templates may have {MADE_DEFINITIONS_BYTES_MAX} \
                 bytes together on this host, and have {}; remove one, or make this one shorter",
                made.bytes
            );
            return Err(Refusal::new(ErrorCode::TooManyDefinitions, message).into());
        }
        Ok(())
    }

    /// Returns a definition that a user may see. One that another user made looks absent.
    ///
    /// # Errors
    /// There is none.
    pub fn get(&self, user: &UserId, id: &DefinitionId) -> Result<Arc<Definition>, Refusal> {
        let definition = self.agents().definition(id)?;
        if definition.is_open_to(user) {
            Ok(definition)
        } else {
            Err(definition_not_found(&id.0, &self.known()))
        }
    }

    /// Returns how many agents and sessions of each definition a user has.
    ///
    /// # Errors
    /// The store cannot be read.
    #[boxed]
    pub async fn counts(
        &self,
        user: &UserId,
    ) -> Result<BTreeMap<DefinitionId, DefinitionCounts>, Error> {
        Ok(self.store().definition_counts(user).await?)
    }

    /// Removes a definition that a user made, and erases its content. The open turns of its agents
    /// end. The agents stay, and no longer accept messages.
    ///
    /// # Errors
    /// No definition of this name was made by this user; with `as_operator` by any user. It belongs
    /// to the configuration.
    #[boxed]
    pub async fn remove<'a>(
        &'a self,
        by: By<'a>,
        id: &DefinitionId,
        as_operator: bool,
    ) -> Result<(), Error> {
        let request = Request::of(by, &json!({ "remove_definition": id }))?;
        let act = async {
            let _replacing = self.core.replacing.lock().await;
            let made = self.store().made_definition(id).await?;
            let made = made.filter(|made| as_operator || made.user_id == *by.user);
            let position = match &made {
                Some(made) => self.store().made_at(made).await?,
                None => None,
            };
            let (Some(made), Some(position)) = (made, position) else {
                // Refuses a definition that is not available to this user.
                self.get(by.user, id)?;
                let message = format!(
                    "`{id}` is a definition of the configuration; the operator takes it out there"
                );
                return Err(Refusal::new(ErrorCode::DefinitionConfigured, message).into());
            };
            let user = made.user_id;
            let removed = DefinitionRemoved {
                definition: id.clone(),
                user_id: user.clone(),
                removed_by: by.user.clone(),
                position,
                time: self.core.now(),
            };
            let event = Context::by(by.user, removed.time).event(Event::DefinitionRemoved(removed));
            let mut commit = Commit::new().append(Stream::Host, Expected::Any, vec![event]);
            commit.key = request.as_ref().map(|request| request.answered(&()));
            self.store().commit(commit).await?;
            let served = self.core.served();
            let next = Catalogue::clone(&served.catalogue).without_made(id);
            self.core.serving.renew(served.renewed(next, &user));
            self.configuration().end_turns_of(vec![id.clone()]);
            Ok(())
        };
        self.requests()
            .once(request.as_ref(), act)
            .await
            .map(Once::either)?;
        rewrite(self.core).await;
        Ok(())
    }

    /// Returns a definition that a user may make others of.
    fn template(&self, user: &UserId, id: &DefinitionId) -> Result<Arc<Definition>, Refusal> {
        let definition = self
            .get(user, id)
            .map_err(|refusal| refusal.at("/template"))?;
        if definition.is_template_for(user) {
            return Ok(definition);
        }
        let message = format!(
            "`{id}` is no template for you; GET /api/definitions marks those that are, and the \
             operator names their users in `templateFor`"
        );
        Err(Refusal::new(ErrorCode::TemplateForbidden, message))
    }

    /// Returns the ids of the definitions of the configuration.
    pub(super) fn known(&self) -> Vec<String> {
        let served = self.core.served();
        let definitions = served.catalogue.definitions();
        definitions
            .filter(|definition| definition.made_by.is_none())
            .map(|definition| definition.agent_id.0.clone())
            .collect()
    }
}

/// Returns the refusal of a list that allows more than that of its template.
fn beyond(wider: &Wider, template: &Definition) -> Refusal {
    let list = snake_case(wider.list);
    let message = format!(
        "`{}` is not within `{list}` of `{}`; leave it out, or write what is",
        wider.pattern, template.agent_id
    );
    Refusal::new(ErrorCode::Invalid, message).at(format!("/lists/{list}"))
}

fn too_many(whose: &str, max: impl std::fmt::Display) -> Refusal {
    let message = format!("{whose} {max} definitions that were made of templates; remove one");
    Refusal::new(ErrorCode::TooManyDefinitions, message)
}
