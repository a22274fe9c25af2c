//! The clearance of a user: the agents that the operator's rules hide from them.
//!
//! Every read of words across agents takes a clearance instead of a user, so that no such read can
//! skip the rules.

use super::ReadError;
use crate::sqlite::list;
use crate::store::Store;
use domain::id::AgentId;
use domain::user::UserId;

/// A user with the agents that are hidden from them. Only [`Store::clearance`] makes one.
#[derive(Debug, Clone)]
pub struct Clearance {
    user: UserId,
    hidden: String,
}

impl Clearance {
    pub(crate) fn user(&self) -> &str {
        self.user.as_str()
    }

    /// The hidden agents, as a list of ids ([`crate::sqlite::list`]).
    pub(crate) fn hidden(&self) -> &str {
        &self.hidden
    }
}

impl Store {
    /// Returns the clearance of a user. The rules say of a path whether its agent is seen; without
    /// any, every agent that the user has a role with is.
    pub async fn clearance(
        &self,
        user: &UserId,
        rules: Option<&(dyn Fn(&str) -> bool + Sync)>,
    ) -> Result<Clearance, ReadError> {
        let mut hidden = Vec::new();
        if let Some(sees) = rules {
            let name = user.clone();
            let text = "SELECT g.id, g.path FROM access a CROSS JOIN agents g ON g.id = a.agent \
                        WHERE a.user_id = ?1";
            let agents: Vec<(AgentId, String)> =
                self.read(move |sql| sql.all(text, [name])).await?;
            let unseen = agents.into_iter().filter(|agent| !sees(&agent.1));
            hidden.extend(unseen.map(|agent| agent.0));
        }
        Ok(Clearance {
            user: user.clone(),
            hidden: list(&hidden),
        })
    }
}
