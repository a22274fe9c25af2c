//! The import matrix: every function that a component may import, under every kind of grant. What
//! comes of each is in `docs/imports.md`.

#![expect(
    clippy::indexing_slicing,
    reason = "JSON that lacks a key is null, and an id of the parser's is in its arena"
)]

use crate::fixture::{Fixture, Kept, Noted, Sight, done, replied, some_basis, tool_call};
use agent_host_runtime::{Component, IMPORTS, Outcome};
use domain::authority::{Caller, Denies, Permissions, ToolRequirements};
use domain::definition::Definition;
use domain::egress::{AddressRange, EgressGrant, HostPattern, Method, Scheme};
use domain::grant::{Access, Bound, BucketGrant, DirectoryGrant, Grant, GuestLimits};
use domain::ruling::Rule;
use egress::{Egress, Limits, SystemResolver, no_tls};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use wit_parser::{Handle, Resolve, Type, TypeDefKind, TypeId};

/// Makes the test write the table instead of comparing with it.
const ACCEPT: &str = "AGENT_HOST_ACCEPT";
const TABLE: &str = "../../docs/imports.md";
const HEAD: &str = "| function | nothing granted | all denied | writing denied | all granted | step of an agent \
     |\n|---|---|---|---|---|---|\n";
const NO_HANDLE: &str = "no handle";
const ANSWERS: &str = "answers";
/// Functions that do not return.
const LEAVES: [&str; 2] = ["wasi:cli/exit.exit", "wasi:cli/exit.exit-with-code"];
const READING: [&str; 2] = ["files.read", "notes.read"];

/// The results of the functions that could be called, by name.
type ImportLog = BTreeMap<String, String>;

/// A function as WIT declares it.
struct Declared {
    name: String,
    /// Resources that one has to have for a call.
    needs: BTreeSet<TypeId>,
    /// Resources that come of one.
    gives: BTreeSet<TypeId>,
}

/// Returns the output of a command of the toolchain.
fn said_by(variable: &str, program: &str, arguments: &[&str]) -> Vec<u8> {
    let program = std::env::var_os(variable).unwrap_or_else(|| program.into());
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// The folder of a crate as cargo has it.
fn source_of(crate_name: &str) -> PathBuf {
    // Crates for other platforms need not be on this machine.
    let version = String::from_utf8(said_by("RUSTC", "rustc", &["-vV"])).unwrap();
    let platform = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap();
    let output = said_by(
        "CARGO",
        "cargo",
        &[
            "metadata",
            "--format-version",
            "1",
            "--offline",
            "--filter-platform",
            platform,
        ],
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output).unwrap();
    let package = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .find(|package| package["name"] == crate_name)
        .unwrap();
    Path::new(package["manifest_path"].as_str().unwrap())
        .parent()
        .unwrap()
        .to_owned()
}

/// Every function of the interfaces that the linker knows. They come from the WIT that the bindings
/// of the host are made of.
fn declared() -> Vec<Declared> {
    let mut wit = Resolve::default();
    wit.push_dir(source_of("wasmtime-wasi-http").join("wit"))
        .unwrap();
    wit.push_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit"))
        .unwrap();
    let mut declared = Vec::new();
    let mut reported = BTreeSet::new();
    for (known, _) in IMPORTS {
        // An interface of two versions is the same in both.
        if !reported.insert(*known) {
            continue;
        }
        let named = |id: &String| id.split('@').next() == Some(*known);
        let found = wit
            .interfaces
            .iter()
            .find(|(id, _)| wit.id_of(*id).as_ref().is_some_and(named));
        let (_, interface) = found.unwrap_or_else(|| panic!("{known} is in no WIT"));
        for function in interface.functions.values() {
            let mut needs = BTreeSet::new();
            for parameter in &function.params {
                if let Type::Id(id) = parameter.ty
                    && let TypeDefKind::Handle(handle) = &wit.types[id].kind
                {
                    needs.extend(resource(&wit, *handle));
                }
            }
            let mut gives = BTreeSet::new();
            function
                .result
                .iter()
                .for_each(|result| owned(&wit, *result, &mut gives));
            declared.push(Declared {
                name: format!("{known}.{}", function.name),
                needs,
                gives,
            });
        }
    }
    declared
}

/// The resource of a handle, under any name that it has where it is used.
fn resource(wit: &Resolve, handle: Handle) -> Option<TypeId> {
    let (Handle::Own(mut id) | Handle::Borrow(mut id)) = handle;
    while let TypeDefKind::Type(Type::Id(original)) = wit.types[id].kind {
        id = original;
    }
    Some(id)
}

/// The resources that a value hands over when all goes well. What only a failure hands over is an
/// error.
fn owned(wit: &Resolve, value: Type, into: &mut BTreeSet<TypeId>) {
    let Type::Id(id) = value else { return };
    match &wit.types[id].kind {
        TypeDefKind::Handle(handle @ Handle::Own(_)) => into.extend(resource(wit, *handle)),
        TypeDefKind::Option(inner) | TypeDefKind::List(inner) | TypeDefKind::Type(inner) => {
            owned(wit, *inner, into)
        }
        TypeDefKind::Result(result) => result.ok.iter().for_each(|inner| owned(wit, *inner, into)),
        TypeDefKind::Tuple(tuple) => tuple
            .types
            .iter()
            .for_each(|inner| owned(wit, *inner, into)),
        TypeDefKind::Record(record) => record
            .fields
            .iter()
            .for_each(|field| owned(wit, field.ty, into)),
        TypeDefKind::Variant(variant) => variant
            .cases
            .iter()
            .filter_map(|case| case.ty)
            .for_each(|inner| owned(wit, inner, into)),
        _ => {}
    }
}

/// Adds the functions that could not be called because no function that could be called gives what
/// they need.
fn complete(declared: &[Declared], mut said: ImportLog) -> ImportLog {
    let mut had = BTreeSet::new();
    loop {
        let before = had.len();
        for function in declared {
            let called = said.get(&function.name);
            if called.is_some_and(|what| what == ANSWERS)
                || (called.is_none() && function.needs.is_subset(&had))
            {
                had.extend(&function.gives);
            }
        }
        if had.len() == before {
            break;
        }
    }
    for function in declared {
        let name = &function.name;
        if let Some(what) = said.get(name) {
            assert!(
                what != NO_HANDLE || !function.needs.is_subset(&had),
                "{name} has all that it needs"
            );
            continue;
        }
        // A step is lent its view by the host.
        assert!(
            !function.needs.is_subset(&had),
            "{name} can be called: call it in tests/programs/probe"
        );
        said.insert(name.clone(), NO_HANDLE.to_owned());
    }
    said
}

fn lines(text: &str) -> ImportLog {
    text.lines()
        .map(|line| line.split_once('\t').unwrap())
        .map(|(name, what)| (name.to_owned(), what.to_owned()))
        .collect()
}

/// A server that breaks off every answer; its address.
fn broken_server() -> (u16, String) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1_024]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nno more");
        }
    });
    (address.port(), format!("http://{address}/"))
}

fn folder(at: &Path) {
    std::fs::create_dir_all(at.join("empty")).unwrap();
    for name in ["file", "old", "spare"] {
        std::fs::write(at.join(name), "some text").unwrap();
    }
    std::os::unix::fs::symlink("file", at.join("link")).unwrap();
}

/// Everything that a tool can be granted.
fn everything(folder: &Path, port: u16) -> Grant {
    Grant {
        directories: vec![DirectoryGrant::whole(folder, "/data", Access::ReadWrite)],
        network: vec![EgressGrant {
            schemes: vec![Scheme::Http],
            ports: Some(vec![port]),
            methods: vec![Method::parse("POST").unwrap()],
            private_addresses: vec![AddressRange::parse("127.0.0.1").unwrap()],
            ..EgressGrant::of(HostPattern::parse("127.0.0.1").unwrap())
        }],
        environment: BTreeMap::from([("WORD".to_owned(), "granted".to_owned())]),
        key_value: vec![BucketGrant::new("notes", Access::ReadWrite)],
        ..Grant::default()
    }
}

/// Returns the authority of a call: of an agent with this deny list, of a tool that asks for these
/// capabilities.
fn bound(grant: &Grant, denied: &[&str], asked: &[String]) -> Result<Bound, Rule> {
    let definition = json!({ "agentId": "a", "displayName": "A", "component": "a", "capabilityDenylist": denied });
    let agent: Definition = serde_json::from_value(definition).unwrap();
    let denies = Denies::default();
    let permissions = Permissions::default();
    let caller = Caller {
        agent: &agent,
        denies: &denies,
        permissions: &permissions,
    };
    caller
        .bound(
            ToolRequirements {
                tool: "matrix",
                capabilities: asked,
            },
            grant,
        )
        .map_err(|denied| denied.rule)
}

async fn of_tool(fixture: &Fixture, tool: &Component, bound: &Bound, url: &str) -> ImportLog {
    fixture
        .runtime
        .open_folders(&bound.directories, &[])
        .unwrap();
    let called = fixture
        .runtime
        .call(
            tool,
            bound,
            tool_call("matrix", url),
            Arc::new(Noted::default()),
            Arc::new(Kept::default()),
        )
        .await;
    let mut said = lines(&done(&called));
    for name in LEAVES {
        let Outcome::Trapped { message, .. } = fixture
            .call_bound(tool, bound, "matrix", name)
            .await
            .outcome
        else {
            panic!("{name} came back");
        };
        assert!(message.contains("exit"), "{message}");
        said.insert(name.to_owned(), "ends the call".to_owned());
    }
    said
}

async fn of_step(fixture: &Fixture, agent: &Component) -> ImportLog {
    let step = async |said: &'static str| {
        let view = Arc::new(Sight::saying(said));
        fixture
            .step_seeing(agent, view, &some_basis(), GuestLimits::default())
            .await
    };
    let mut said = lines(&replied(&step("").await));
    for name in LEAVES {
        let Outcome::Trapped { message, .. } = step(name).await.outcome else {
            panic!("{name} came back")
        };
        assert!(message.contains("exit"), "{message}");
        said.insert(name.to_owned(), "ends the call".to_owned());
    }
    said
}

/// Every function that can be imported does what the table says under every kind of grant.
#[tokio::test]
async fn every_import_does_what_the_table_says_under_every_kind_of_grant() {
    let egress = Egress::new(
        Arc::new(SystemResolver),
        no_tls().unwrap(),
        Limits::default(),
    );
    let fixture = Fixture::with(|config| config.egress = Some(Arc::new(egress)));
    let tool = fixture.load("matrix").await;
    let agent = fixture.load("matrix-agent").await;
    let (port, url) = broken_server();
    let asked: Vec<String> = [
        "files.read",
        "files.write",
        "net.http",
        "env.read",
        "notes.read",
        "notes.write",
    ]
    .map(String::from)
    .to_vec();
    let data = fixture.folder.path().join("data");
    let grant = everything(&data, port);

    // A tool that says what it asks for is not called at all. One that conceals it gets nothing,
    // however it tries.
    assert_eq!(
        bound(&grant, &["*"], &asked).unwrap_err(),
        Rule::CapabilityDenylist
    );
    let reading = READING.map(String::from);
    let calls = [
        bound(&Grant::default(), &[], &asked),
        bound(&grant, &["*"], &[]),
        bound(&grant, &["*.write", "net.http", "env.read"], &reading),
        bound(&grant, &[], &asked),
    ];
    let declared = declared();
    let mut columns = Vec::new();
    for call in calls {
        let _ = std::fs::remove_dir_all(&data);
        folder(&data);
        columns.push(complete(
            &declared,
            of_tool(&fixture, &tool, &call.unwrap(), &url).await,
        ));
    }
    columns.push(complete(&declared, of_step(&fixture, &agent).await));

    let mut table = HEAD.to_owned();
    for Declared { name, .. } in &declared {
        let cells: Vec<&str> = columns.iter().map(|column| column[name].as_str()).collect();
        table.push_str(&format!("| `{name}` | {} |\n", cells.join(" | ")));
    }
    for column in &columns {
        let unknown = column
            .keys()
            .find(|name| declared.iter().all(|function| function.name != **name));
        assert_eq!(unknown, None, "it is called and not declared");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(TABLE);
    let document = std::fs::read_to_string(&path).unwrap();
    let (prose, written) = document.split_at(document.find("| function |").unwrap());
    if std::env::var_os(ACCEPT).is_some() {
        std::fs::write(&path, format!("{prose}{table}")).unwrap();
    } else if let Some((is, should)) = table
        .lines()
        .zip(written.lines().chain(std::iter::repeat("")))
        .find(|(is, should)| is != should)
    {
        panic!(
            "docs/imports.md says\n{should}\nand it is\n{is}\nIf that is as it should be, run \
                this test with {ACCEPT}=1"
        );
    } else {
        assert_eq!(table, written, "docs/imports.md says more");
    }
}

/// Projects outside of the repository are built with a copy.
#[test]
fn the_wasi_that_projects_get_is_the_one_that_the_host_links() {
    let theirs = source_of("wasmtime-wasi-http").join("wit/deps");
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent-host/src/new/wasi");
    let mut packages = 0;
    for entry in std::fs::read_dir(theirs).unwrap() {
        let linked = entry.unwrap();
        let copy = ours.join(linked.file_name());
        let is_same = std::fs::read(&copy).ok() == std::fs::read(linked.path()).ok();
        assert!(
            is_same,
            "copy {} to {}, and let the pages that name its version name the new one",
            linked.path().display(),
            copy.display()
        );
        packages += 1;
    }
    assert!(packages > 0);
}
