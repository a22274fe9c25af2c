//! A cache of the results of read-only delegations: which are cached, under which key, and for how
//! long.

use super::{DelegateResult, Delegation, Target};
use crate::access::user::UserId;
use crate::agents::authority::{Denies, Permissions};
use crate::values::digest::Digest;
use crate::values::id::AgentId;
use crate::values::limits::INLINE_TEXT_BYTES_MAX;
use crate::values::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// The most bytes that the mark of a cached result adds.
const MARK_BYTES_MAX: usize = 64;

/// The most bytes of a cached result. With its mark it still fits into an event. A longer result is
/// moved to a blob, and is computed again instead.
const KEPT_BYTES_MAX: usize = INLINE_TEXT_BYTES_MAX - MARK_BYTES_MAX;

/// The limits of the cache for results of read-only delegations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CacheLimits {
    /// Seconds for which a result is reused.
    #[schemars(range(min = 1, max = 86_400))]
    pub ttl_s: u64,
    /// The most cached results; the oldest are removed first.
    #[schemars(range(min = 1, max = 100_000))]
    pub entries_max: u64,
    /// Bytes of all cached results together; the oldest are removed first.
    #[schemars(range(min = 1_024, max = 1_073_741_824))]
    pub bytes_max: u64,
}

impl Default for CacheLimits {
    fn default() -> Self {
        Self {
            ttl_s: 60,
            entries_max: 1_000,
            bytes_max: 16 << 20,
        }
    }
}

/// The caller of a delegation, as far as results depend on it.
#[derive(Debug, Clone, Copy)]
pub struct CacheScope<'a> {
    /// The user for whom it works.
    pub user: &'a UserId,
    /// The calling agent.
    pub agent: AgentId,
    /// The denials that bind the work.
    pub denies: &'a Denies,
    /// The permissions that bind the work.
    pub permissions: &'a Permissions,
}

/// A cached result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Its key.
    pub key: Digest,
    /// The user for whom the work was done.
    pub user: UserId,
    /// The result.
    pub hit: Hit,
    /// Time at which it was received.
    pub time: Timestamp,
}

/// A result, stored in or read from the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The JSON text for the model. If it is reused, its metadata says so, with its age.
    pub result: String,
    /// True if it rests on content from outside.
    pub untrusted: bool,
}

/// The cached results, by their keys and in the order of receipt.
#[derive(Debug, Default)]
pub struct Cache {
    entries: HashMap<Digest, Placed>,
    /// The key of the result at each place.
    places: BTreeMap<u64, Digest>,
    /// The place of the next result.
    next: u64,
    bytes: u64,
}

/// A cached result, with its position in the order of receipt.
#[derive(Debug)]
struct Placed {
    kept: Kept,
    place: u64,
}

impl Delegation {
    /// Returns whether its operation only reads, so that a result may be reused. A model's
    /// reasoning counts as more than reading, and so does a request other than GET or HEAD.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        match (self.target, self.operation.as_str()) {
            (Target::Worker, "read_file" | "list_files" | "search_files" | "web_search") => true,
            (Target::Worker, "web_fetch") => self
                .parameters
                .get("method")
                .is_none_or(|method| matches!(method.as_str(), Some("GET" | "HEAD"))),
            (Target::Worker | Target::Researcher | Target::Coder, _) => false,
        }
    }

    /// Returns the key of its result. The key depends on the operation, the parameters in any
    /// order, the agent, the user and the authority.
    #[must_use]
    pub fn cache_key(&self, scope: CacheScope<'_>) -> Digest {
        let authority = json!([scope.denies, scope.permissions]);
        Digest::of_parts(&[
            b"delegation",
            self.target.as_str().as_bytes(),
            self.operation.as_bytes(),
            sorted(&Value::Object(self.parameters.clone())).as_bytes(),
            scope.user.as_str().as_bytes(),
            scope.agent.0.as_bytes(),
            sorted(&authority).as_bytes(),
        ])
    }
}

/// Returns JSON text with the fields of every object in order.
fn sorted(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|field| field.0);
            let fields: Vec<String> = fields
                .into_iter()
                .map(|(name, value)| format!("{}:{}", json!(name), sorted(value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(sorted).collect();
            format!("[{}]", items.join(","))
        }
        other => other.to_string(),
    }
}

impl Cache {
    /// Returns the cached result of a key, if it is not too old.
    #[must_use]
    pub fn get(&self, key: Digest, limits: CacheLimits, now: Timestamp) -> Option<Hit> {
        let entry = &self.entries.get(&key)?.kept;
        let age_ms = now.since_ms(entry.time);
        if age_ms >= limits.ttl_s.saturating_mul(1_000) || now < entry.time {
            return None;
        }
        Some(Hit {
            result: DelegateResult::kept(&entry.hit.result, age_ms)?,
            untrusted: entry.hit.untrusted,
        })
    }

    /// Caches a result, unless it is larger than the whole cache or does not fit into an event.
    pub fn put(&mut self, kept: Kept, limits: CacheLimits) {
        let bytes = kept.hit.result.len();
        if bytes > KEPT_BYTES_MAX || bytes as u64 > limits.bytes_max {
            return;
        }
        self.remove(kept.key);
        self.bytes += bytes as u64;
        let place = self.next;
        self.next += 1;
        self.places.insert(place, kept.key);
        self.entries.insert(kept.key, Placed { kept, place });
        while self.entries.len() as u64 > limits.entries_max || self.bytes > limits.bytes_max {
            let Some((_, oldest)) = self.places.pop_first() else {
                return;
            };
            self.remove(oldest);
        }
    }

    /// Removes a user's cached results, because their data may change.
    pub fn forget(&mut self, user: &UserId) {
        let theirs = |placed: &&Placed| placed.kept.user == *user;
        let keys: Vec<Digest> = self
            .entries
            .values()
            .filter(theirs)
            .map(|placed| placed.kept.key)
            .collect();
        keys.into_iter().for_each(|key| self.remove(key));
    }

    fn remove(&mut self, key: Digest) {
        if let Some(removed) = self.entries.remove(&key) {
            self.places.remove(&removed.place);
            self.bytes -= removed.kept.hit.result.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use uuid::Uuid;

    const LIMITS: CacheLimits = CacheLimits {
        ttl_s: 10,
        entries_max: 2,
        bytes_max: 100,
    };

    fn delegation(operation: &str, parameters: &Value) -> Delegation {
        let arguments =
            json!({ "target": "worker", "operation": operation, "parameters": parameters });
        parse(&arguments.to_string(), &Target::ALL).unwrap()
    }

    fn user(name: &str) -> UserId {
        name.parse().unwrap()
    }

    /// A result of a user's that came at 1 second.
    fn kept(n: u8, of: &str, text: &str) -> Kept {
        let result = json!({ "success": true, "output": text, "metadata": {} });
        Kept {
            key: Digest([n; 32]),
            user: user(of),
            hit: Hit {
                result: result.to_string(),
                untrusted: true,
            },
            time: Timestamp(1_000),
        }
    }

    #[test]
    fn only_operations_that_read_are_kept() {
        let path = json!({ "path": "a" });
        for (operation, parameters, expected) in [
            ("read_file", path.clone(), true),
            ("list_files", path.clone(), true),
            ("delete_file", path, false),
            ("write_file", json!({ "path": "a", "content": "b" }), false),
            ("web_fetch", json!({ "url": "https://a.example" }), true),
        ] {
            let delegation = delegation(operation, &parameters);
            assert_eq!(delegation.is_read_only(), expected, "{operation}");
        }
        let mut post = delegation("web_fetch", &json!({ "url": "https://a.example" }));
        post.parameters.insert("method".into(), json!("POST"));
        assert!(!post.is_read_only());
    }

    #[test]
    fn a_key_is_of_one_operation_user_agent_and_authority() {
        let none = Denies::default();
        let all = Permissions::default();
        let ada = user("ada");
        let eve = user("eve");
        let scope = |user| CacheScope {
            user,
            agent: AgentId(Uuid::nil()),
            denies: &none,
            permissions: &all,
        };
        let read = delegation("read_file", &json!({ "path": "a" }));
        let key = read.cache_key(scope(&ada));
        assert_eq!(read.cache_key(scope(&ada)), key);
        let other = delegation("read_file", &json!({ "path": "b" }));
        let others_agent = CacheScope {
            agent: AgentId(Uuid::from_u128(1)),
            ..scope(&ada)
        };
        let denied: Denies = serde_json::from_value(json!({ "tools": ["web_*"] })).unwrap();
        let denies = CacheScope {
            denies: &denied,
            ..scope(&ada)
        };
        let permitted: Permissions = serde_json::from_value(json!({ "tools": ["web_*"] })).unwrap();
        let permissions = CacheScope {
            permissions: &permitted,
            ..scope(&ada)
        };
        assert_ne!(read.cache_key(denies), read.cache_key(permissions));
        for other in [
            read.cache_key(denies),
            read.cache_key(permissions),
            read.cache_key(scope(&eve)),
            read.cache_key(others_agent),
            other.cache_key(scope(&ada)),
            delegation("list_files", &json!({ "path": "a" })).cache_key(scope(&ada)),
        ] {
            assert_ne!(other, key);
        }
        assert_eq!(
            sorted(&json!({ "b": [1, { "d": 1, "c": 2 }], "a": "x" })),
            r#"{"a":"x","b":[1,{"c":2,"d":1}]}"#
        );
    }

    #[test]
    fn a_kept_result_says_so_and_is_used_until_it_is_too_old_or_makes_room() {
        let mut cache = Cache::default();
        let key = |n: u8| Digest([n; 32]);
        let ada = user("ada");
        let at = Timestamp(1_000);
        cache.put(kept(1, "ada", "one"), LIMITS);
        let hit = cache.get(key(1), LIMITS, Timestamp(4_500)).unwrap();
        let result: Value = serde_json::from_str(&hit.result).unwrap();
        assert_eq!(
            result["metadata"],
            json!({ "cached": true, "ageMs": 3_500 })
        );
        assert_eq!((&result["output"], hit.untrusted), (&json!("one"), true));
        assert_eq!(cache.get(key(1), LIMITS, Timestamp(11_000)), None);
        assert_eq!(cache.get(key(1), LIMITS, Timestamp(0)), None);
        assert_eq!(cache.get(key(2), LIMITS, at), None);

        cache.put(kept(2, "eve", "two"), LIMITS);
        cache.put(kept(3, "ada", "3"), LIMITS);
        assert_eq!(cache.get(key(1), LIMITS, at), None, "it made room");
        assert!(cache.get(key(3), LIMITS, at).is_some());
        cache.forget(&ada);
        assert_eq!(cache.get(key(3), LIMITS, at), None);
        assert!(cache.get(key(2), LIMITS, at).is_some());
        cache.put(kept(4, "ada", &"x".repeat(200)), LIMITS);
        assert_eq!(cache.get(key(4), LIMITS, at), None, "it is too large");
        // What was forgotten or replaced takes no room.
        cache.put(kept(2, "eve", "two"), LIMITS);
        cache.put(kept(5, "ada", "5"), LIMITS);
        assert!(
            [2, 5]
                .map(key)
                .iter()
                .all(|key| cache.get(*key, LIMITS, at).is_some())
        );
    }

    #[test]
    fn a_result_is_kept_only_if_it_stands_whole_in_an_event_with_its_mark() {
        let limits = CacheLimits {
            ttl_s: 86_400,
            ..CacheLimits::default()
        };
        let around = kept(1, "ada", "").hit.result.len();
        for (bytes, expected) in [(KEPT_BYTES_MAX, true), (KEPT_BYTES_MAX + 1, false)] {
            let mut cache = Cache::default();
            cache.put(kept(1, "ada", &"x".repeat(bytes - around)), limits);
            let late = Timestamp(1_000 + 86_399_999);
            let hit = cache.get(Digest([1; 32]), limits, late);
            assert_eq!(hit.is_some(), expected, "{bytes}");
            assert!(hit.is_none_or(|hit| hit.result.len() <= INLINE_TEXT_BYTES_MAX));
        }
    }
}
