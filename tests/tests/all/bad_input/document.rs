//! The API's own document (OpenAPI), as far as it says what is bad input.

use super::UNPROVEN;
use super::cases::SURPRISE;
use agent_host_tests::process::Host;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt;

/// The keys of a path's description that are operations.
const METHODS: [&str; 8] = [
    "get", "put", "post", "delete", "options", "head", "patch", "trace",
];

/// The media type of bodies that are no JSON.
const BYTES: &str = "application/octet-stream";

/// One value of each kind that JSON Schema has a word for.
fn one_of_each() -> [(&'static str, Value); 7] {
    [
        ("null", Value::Null),
        ("boolean", json!(true)),
        ("integer", json!(7)),
        ("number", json!(1.5)),
        ("string", json!("x")),
        ("array", json!(["x"])),
        ("object", json!({ "x": 1 })),
    ]
}

/// The document.
pub(super) struct Document(Value);

/// One endpoint.
pub(super) struct Operation {
    pub(super) method: Method,
    /// The path with the names of ids in braces.
    pub(super) path: String,
    /// It is of the old API, which ignores what it does not know, as its clients expect.
    pub(super) is_deprecated: bool,
    /// It needs no credential.
    pub(super) is_open: bool,
    /// It takes the token of a visitor, and no other credential.
    pub(super) is_of_visitors: bool,
    /// The names in its path.
    pub(super) ids: Vec<String>,
    pub(super) queries: Vec<Query>,
    /// The headers that it has a meaning for.
    pub(super) headers: Vec<String>,
    pub(super) body: Option<Body>,
    /// It takes a body that is no JSON, as it is.
    pub(super) takes_bytes: bool,
    /// The statuses and codes of its refusals.
    codes: BTreeSet<(u16, String)>,
    /// Faults of the document itself.
    pub(super) faults: Vec<String>,
}

/// A parameter of a query.
pub(super) struct Query {
    pub(super) name: String,
    pub(super) is_required: bool,
    pub(super) shape: Shape,
}

/// A JSON object that an endpoint takes.
pub(super) struct Body {
    /// It must be there.
    pub(super) is_required: bool,
    /// It has no other properties than these.
    pub(super) is_closed: bool,
    pub(super) properties: Vec<Property>,
}

/// A property of a body.
pub(super) struct Property {
    pub(super) name: String,
    pub(super) is_required: bool,
    pub(super) shape: Shape,
}

/// The requirements on a value.
pub(super) struct Shape {
    /// Its types, as JSON Schema names them.
    kinds: BTreeSet<String>,
    /// True if it is one of some texts, and no other.
    pub(super) is_enum: bool,
    /// The shape of its items when it is a list.
    pub(super) items: Option<Box<Self>>,
    pub(super) minimum: Option<i64>,
    pub(super) maximum: Option<i64>,
}

impl Document {
    /// The document of a host.
    pub(super) async fn of(host: &Host) -> Self {
        let answer = host.get("/openapi.json").gives(200).await;
        Self(answer.body)
    }

    /// Every endpoint.
    pub(super) fn operations(&self) -> Vec<Operation> {
        let mut operations = Vec::new();
        for (path, item) in self.0["paths"].as_object().unwrap() {
            for (method, said) in item
                .as_object()
                .unwrap()
                .iter()
                .filter(|(name, _)| METHODS.contains(&name.as_str()))
            {
                let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
                operations.push(self.operation(method, path, said));
            }
        }
        assert!(
            operations.len() > 30,
            "the document has {} operations",
            operations.len()
        );
        operations
    }

    fn operation(&self, method: Method, path: &str, said: &Value) -> Operation {
        let ids: Vec<String> = path
            .split('{')
            .skip(1)
            .map(|rest| rest.split('}').next().unwrap().to_owned())
            .collect();
        let mut queries = Vec::new();
        let mut headers = Vec::new();
        let mut misplaced = Vec::new();
        for parameter in said["parameters"].as_array().into_iter().flatten() {
            let parameter = self.resolve(parameter);
            let name = parameter["name"].as_str().unwrap().to_owned();
            let place = parameter["in"].as_str().unwrap();
            match place {
                "path" if ids.contains(&name) => continue,
                "header" => {
                    headers.push(name);
                    continue;
                }
                "query" => {}
                _ => misplaced.push(name.clone()),
            }
            queries.push(Query {
                name,
                is_required: parameter["required"] == true,
                shape: self.shape(&parameter["schema"]),
            });
        }
        let said_of_body = said.get("requestBody").map(|body| self.resolve(body));
        let takes_bytes = said_of_body.is_some_and(|body| body["content"].get(BYTES).is_some());
        let body = said_of_body
            .filter(|_| !takes_bytes)
            .map(|body| self.body(body));
        let is_deprecated = said["deprecated"] == true;
        let mut faults = Vec::new();
        if !misplaced.is_empty() {
            faults.push(format!(
                "{method} {path}: the document has these parameters in its path, which has them \
                 not: {misplaced:?}"
            ));
        }
        if !is_deprecated && body.as_ref().is_some_and(|body| !body.is_closed) {
            faults.push(format!("{method} {path}: its body has unknown properties"));
        }
        // A list with an empty requirement: none at all is enough.
        let is_open = said["security"]
            .as_array()
            .is_some_and(|variants| variants.contains(&json!({})));
        let is_of_visitors = said["security"] == json!([{ "visitor": [] }]);
        let codes = codes(said);
        Operation {
            method,
            path: path.to_owned(),
            is_deprecated,
            is_open,
            is_of_visitors,
            ids,
            queries,
            headers,
            body,
            takes_bytes,
            codes,
            faults,
        }
    }

    fn body(&self, said: &Value) -> Body {
        let schema = &said["content"]["application/json"]["schema"];
        let alternatives = self.alternatives(schema);
        let object = alternatives
            .into_iter()
            .find(|alternative| alternative["properties"].is_object());
        let object = object.unwrap_or_else(|| {
            panic!("a body that is no object: say here what would be wrong with it: {said}")
        });
        let is_required = |name: &str| {
            object["required"]
                .as_array()
                .is_some_and(|names| names.contains(&json!(name)))
        };
        let properties = object["properties"].as_object().unwrap().iter();
        Body {
            is_required: said["required"] == true,
            is_closed: object["additionalProperties"] == false,
            properties: properties
                .map(|(name, schema)| Property {
                    name: name.clone(),
                    is_required: is_required(name),
                    shape: self.shape(schema),
                })
                .collect(),
        }
    }

    fn shape(&self, schema: &Value) -> Shape {
        let alternatives = self.alternatives(schema);
        let mut kinds = BTreeSet::new();
        for alternative in &alternatives {
            match &alternative["type"] {
                Value::String(kind) => {
                    kinds.insert(kind.clone());
                }
                Value::Array(several) => {
                    kinds.extend(several.iter().map(|kind| kind.as_str().unwrap().to_owned()))
                }
                // Where nothing is said, everything is taken.
                _ => kinds.extend(one_of_each().map(|(kind, _)| kind.to_owned())),
            }
        }
        let items = alternatives
            .iter()
            .find_map(|alternative| alternative.get("items"));
        let number = |name: &str| {
            alternatives
                .iter()
                .find_map(|alternative| alternative[name].as_i64())
        };
        Shape {
            kinds,
            is_enum: alternatives
                .iter()
                .any(|alternative| alternative["enum"].is_array()),
            items: items.map(|items| Box::new(self.shape(items))),
            minimum: number("minimum"),
            maximum: number("maximum"),
        }
    }

    /// The schemas of which a value must fit one.
    fn alternatives<'a>(&'a self, schema: &'a Value) -> Vec<&'a Value> {
        let schema = self.resolve(schema);
        assert!(
            schema["allOf"].is_null(),
            "`allOf` is not understood here: {schema}"
        );
        match schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
            Some(several) => several
                .iter()
                .flat_map(|alternative| self.alternatives(alternative))
                .collect(),
            None => vec![schema],
        }
    }

    /// Returns the schema that a reference stands for.
    fn resolve<'a>(&'a self, mut schema: &'a Value) -> &'a Value {
        while let Some(reference) = schema["$ref"].as_str() {
            let place = reference.strip_prefix('#').unwrap();
            schema = self
                .0
                .pointer(place)
                .unwrap_or_else(|| panic!("`{reference}` is nowhere in the document"));
        }
        schema
    }
}

/// Returns the statuses and codes of an operation's refusals, as its responses list them.
fn codes(said: &Value) -> BTreeSet<(u16, String)> {
    let mut codes = BTreeSet::new();
    for (status, response) in said["responses"].as_object().unwrap() {
        let listed = response["x-codes"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        codes.extend(listed.map(|code| (status.parse().unwrap(), code.to_owned())));
    }
    codes
}

impl Operation {
    /// Returns true if it is documented that it may refuse in this way.
    pub(super) fn may_say(&self, status: u16, code: &str) -> bool {
        self.codes.contains(&(status, code.to_owned()))
    }

    /// Returns true if its requests are signed: without a signature, all are refused alike.
    pub(super) fn is_signed(&self) -> bool {
        self.headers
            .iter()
            .any(|name| name == "X-Agent-Host-Signature")
    }

    /// Returns true if its calls come from outside and prove themselves as the operator says.
    pub(super) fn is_proven(&self) -> bool {
        self.may_say(401, UNPROVEN)
    }

    /// Returns true if a request's path is one of its own.
    pub(super) fn is_at(&self, method: &Method, path: &str) -> bool {
        let own: Vec<&str> = self.path.split('/').collect();
        let given: Vec<&str> = path.split('/').collect();
        let fits = |(own, given): (&&str, &&str)| own.starts_with('{') || own == given;
        self.method == *method && own.len() == given.len() && own.iter().zip(&given).all(fits)
    }

    /// Returns true if the `field` of a problem names a part of a request. The part is documented,
    /// or one that a case adds.
    pub(super) fn has(&self, field: &str) -> bool {
        match field.split_once(':') {
            Some(("query", name)) => {
                name == SURPRISE || self.queries.iter().any(|query| query.name == name)
            }
            Some(("path", name)) => self.ids.iter().any(|id| id == name),
            // Every request has some that no document lists, such as its content type.
            Some(("header", _)) => true,
            None if field == "body" => self.takes_bytes,
            _ => {
                let name = field
                    .strip_prefix('/')
                    .and_then(|pointer| pointer.split('/').next());
                let mut properties = self.body.iter().flat_map(|body| &body.properties);
                name.is_some_and(|name| {
                    name == SURPRISE || properties.any(|property| property.name == name)
                })
            }
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

impl Shape {
    /// Returns true if it takes values of a kind.
    pub(super) fn takes(&self, kind: &str) -> bool {
        self.kinds.contains(kind) || (kind == "integer" && self.kinds.contains("number"))
    }

    /// Returns true if it takes everything.
    pub(super) fn takes_anything(&self) -> bool {
        self.not_taken().is_empty()
    }

    /// A value of each kind that it does not take.
    pub(super) fn not_taken(&self) -> Vec<(&'static str, Value)> {
        one_of_each()
            .into_iter()
            .filter(|(kind, _)| !self.takes(kind))
            .collect()
    }
}
