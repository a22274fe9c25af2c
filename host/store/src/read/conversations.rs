//! Conversations: whose they are, and their sessions among those of a user.

use super::ReadError;
use crate::sql::args;
use crate::store::Store;
use domain::id::ConversationId;
use domain::user::UserId;

/// A filter for the sessions of a user; by default it matches all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserSessionFilter {
    /// Only those of this type.
    pub session_type: Option<String>,
    /// True for those alone that take input.
    pub open: bool,
    /// Only those of this conversation.
    pub conversation: Option<ConversationId>,
}

impl Store {
    /// Returns whether a conversation is another user's: they have a session in it, and this user
    /// has none.
    pub async fn is_conversation_of_another(
        &self,
        conversation: ConversationId,
        user: &UserId,
    ) -> Result<bool, ReadError> {
        let user = user.clone();
        self.read(move |sql| {
            let text = "SELECT 1 FROM sessions WHERE user_id = ?1 AND conversation = ?2";
            if sql.exists(text, args![user, conversation])? {
                return Ok(false);
            }
            let text = "SELECT 1 FROM sessions WHERE conversation = ?1";
            sql.exists(text, [conversation])
        })
        .await
    }
}
