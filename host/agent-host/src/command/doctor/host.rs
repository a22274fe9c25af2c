//! Checks of what a host would do: listen, load components, reach models.

use super::{Finding, Grade};
use crate::answer::{list, text};
use crate::client::{self, Client};
use crate::command::pending::Pending;
use crate::command::status::outage_text;
use crate::config::{Loaded, unfit};
use crate::models::gateway;
use crate::serve::{load_catalogue, refuse_errors};
use domain::digest::Salt;
use domain::message::{Message, Part, Role};
use domain::model::Prompt;
use llm::{Gateway, NoDeltas};
use serde_json::Value;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// The name of what is found about models.
pub(super) const MODELS: &str = "models";
/// The time in which whoever listens at the port must have answered.
const PORT_PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of that answer.
const ANSWER_BYTES_MAX: u64 = 16 * 1024;
/// The time in which a model must have answered, retries included.
const MODEL_PATIENCE: Duration = Duration::from_secs(60);
/// Tokens of the reply that a model is asked for.
const REPLY_TOKENS_MAX: u32 = 16;

/// Checks that the host listens at its address, or could.
pub(super) async fn port(loaded: &Loaded) -> Finding {
    let name = "port";
    let running = client::address(loaded);
    if let Ok(Some(version)) = timeout(PORT_PATIENCE, version_at(running)).await {
        let message = format!("a host runs at {running}, version {version}");
        return Finding::new(name, Grade::Ok, message);
    }
    // Nobody listens there, or somebody else.
    let listen = loaded.config.server.listen;
    match TcpListener::bind(listen).await {
        Ok(_) => Finding::new(name, Grade::Ok, format!("{listen} is free")),
        Err(error) => {
            let fix = match error.kind() {
                ErrorKind::AddrInUse => format!(
                    "stop the program that listens there (`ss -ltnp 'sport = :{}'` names it), or \
                     give `server.listen` another port",
                    listen.port()
                ),
                ErrorKind::AddrNotAvailable => {
                    "give `server.listen` an address of this machine, such as 127.0.0.1".to_owned()
                }
                _ => "give `server.listen` a port from 1024 on".to_owned(),
            };
            let message = format!("cannot listen at {listen}: {error}");
            Finding::new(name, Grade::Fail, message).mended_by(fix)
        }
    }
}

/// Returns the version of the host that listens at an address. It is asked without a credential:
/// somebody else may listen there.
async fn version_at(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!("GET /version HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    let mut limited = stream.take(ANSWER_BYTES_MAX);
    limited.read_to_end(&mut answer).await.ok()?;
    let answer = String::from_utf8(answer).ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    let document: Value = serde_json::from_str(body).ok()?;
    let version = text(&document, "/version");
    (!version.is_empty()).then(|| version.to_owned())
}

/// Checks that every component loads, and that those of triggers and connectors are some.
pub(super) async fn components(loaded: &Loaded) -> Finding {
    let name = "components";
    // Compiled code is neither left in the data folder, where it would be another user's than the
    // host's, nor taken from there: whoever runs this need not trust the host's user.
    let scratch = match tempfile::tempdir() {
        Ok(scratch) => scratch,
        Err(error) => {
            let message = format!("there is no temporary folder to compile in: {error}");
            return Finding::new(name, Grade::Fail, message);
        }
    };
    let mut loaded = loaded.clone();
    loaded.data = Some(scratch.path().to_owned());
    let catalogue = match load_catalogue(&loaded).await {
        Ok(catalogue) => catalogue,
        Err(failure) => return Finding::of_failure(name, &failure),
    };
    // Triggers and connectors whose components are something else keep the host from starting.
    match refuse_errors(&unfit(&loaded.config, &catalogue).await) {
        Ok(()) => {
            let names: Vec<&str> = catalogue.entries().map(|it| it.name.as_str()).collect();
            Finding::new(name, Grade::Ok, format!("loaded: {}", names.join(", ")))
        }
        Err(failure) => Finding::of_failure(name, &failure),
    }
}

/// Checks that providers have their keys, and asks each model if that is wanted.
pub(super) async fn models(loaded: &Loaded, ask: bool) -> Vec<Finding> {
    let gateway = match gateway(loaded) {
        Ok(gateway) => gateway,
        Err(failure) => return vec![Finding::of_failure(MODELS, &failure)],
    };
    let aliases: Vec<&str> = loaded.config.models.keys().map(String::as_str).collect();
    if aliases.is_empty() {
        // That none is configured is a finding of the configuration.
        return Vec::new();
    }
    if !ask {
        let message = format!("set up, not asked: {}", aliases.join(", "));
        return vec![Finding::new(MODELS, Grade::Ok, message)];
    }
    let mut findings = Vec::new();
    for alias in aliases {
        findings.push(answer_of(&gateway, alias).await);
    }
    findings
}

/// Tells whether the host that runs could be set up with the models of its file.
pub(super) fn models_of_running(loaded: &Loaded, running: &Pending) -> Finding {
    match running.refused() {
        Some(reason) => Finding::new(
            MODELS,
            Grade::Fail,
            format!("the file is refused: {reason}"),
        ),
        None => {
            let aliases: Vec<&str> = loaded.config.models.keys().map(String::as_str).collect();
            let message = format!("set up in the running host: {}", aliases.join(", "));
            Finding::new(MODELS, Grade::Ok, message)
        }
    }
}

/// Tells which providers and connectors of the host that runs are down.
pub(super) async fn outages(loaded: &Loaded) -> Vec<Finding> {
    let status = async { Client::new(loaded)?.get("/api/status").await };
    match status.await {
        Ok(status) => list(&status, "/outages").iter().map(outage).collect(),
        Err(failure) => vec![Finding::of_failure("outages", &failure)],
    }
}

fn outage(outage: &Value) -> Finding {
    let (name, fix) = match text(outage, "/kind") {
        "provider" => (MODELS, "`agent-host doctor --ask-models` asks now"),
        _ => (
            "connectors",
            "`agent-host connector list` says what it does",
        ),
    };
    let message = format!("down: {}", outage_text(outage));
    Finding::new(name, Grade::Warn, message).mended_by(fix)
}

/// Asks a model for a few tokens.
async fn answer_of(gateway: &Gateway, alias: &str) -> Finding {
    let prompt = prompt(alias);
    match timeout(MODEL_PATIENCE, gateway.complete(&prompt, &NoDeltas)).await {
        Ok(completion) => match completion.result {
            Ok(reply) => Finding::new(
                MODELS,
                Grade::Ok,
                format!("{alias}: {} answers as {}", reply.provider, reply.model),
            ),
            Err(failure) => Finding::new(MODELS, Grade::Fail, format!("{alias}: {failure}"))
                .mended_by(format!(
                    "look at `models.{alias}`, and at the key and address of its provider"
                )),
        },
        Err(_) => {
            let seconds = MODEL_PATIENCE.as_secs();
            let message = format!("{alias}: no answer within {seconds} s");
            Finding::new(MODELS, Grade::Fail, message)
                .mended_by("look whether this machine reaches the provider")
        }
    }
}

fn prompt(alias: &str) -> Prompt {
    let message = Message {
        id: 1,
        role: Role::User,
        parts: vec![Part::text("Answer with one word: hello")],
        origin: "api".to_owned(),
        untrusted: false,
        marked_elsewhere: None,
        speaker: None,
        answers: None,
        salt: Salt::default(),
    };
    Prompt {
        model: Some(alias.to_owned()),
        system: Vec::new(),
        stable_blocks: 0,
        messages: vec![message],
        tools: Vec::new(),
        max_tokens: Some(REPLY_TOKENS_MAX),
        reply_schema: None,
        sampling: domain::sampling::Sampling::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load;

    fn loaded(folder: &std::path::Path, listen: &str) -> Loaded {
        let file = folder.join("c.toml");
        let text = format!("[server]\ndataDir = {folder:?}\nlisten = {listen:?}\n");
        std::fs::write(&file, text).unwrap();
        load(&file, []).unwrap()
    }

    #[tokio::test]
    async fn a_port_is_free_taken_by_another_program_or_the_hosts_own() {
        let folder = tempfile::tempdir().unwrap();
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = taken.local_addr().unwrap();
        let loaded = loaded(folder.path(), &address.to_string());
        let answers = async {
            for body in ["not a host", "{\"version\":\"9.9.9\"}"] {
                let (mut stream, _) = taken.accept().await.unwrap();
                let mut request = [0; 512];
                let read = stream.read(&mut request).await.unwrap();
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                assert!(
                    !request.to_lowercase().contains("authorization"),
                    "{request}"
                );
                let answer = format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{body}");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        };
        let checks = async { (port(&loaded).await, port(&loaded).await) };
        let ((), (unknown_sender, host)) = tokio::join!(answers, checks);
        assert_eq!(unknown_sender.grade, Grade::Fail, "{unknown_sender:?}");
        assert!(unknown_sender.fix.unwrap().contains("server.listen"));
        assert_eq!(host.grade, Grade::Ok, "{host:?}");
        assert!(host.message.contains("9.9.9"), "{host:?}");
        drop(taken);
        assert!(port(&loaded).await.message.contains("is free"));
    }

    #[tokio::test]
    async fn an_address_of_another_machine_is_told_with_the_fix() {
        let folder = tempfile::tempdir().unwrap();
        let loaded = loaded(folder.path(), "192.0.2.1:7777");
        let found = timeout(Duration::from_secs(20), port(&loaded))
            .await
            .unwrap();
        assert_eq!(found.grade, Grade::Fail);
        assert!(found.fix.unwrap().contains("an address of this machine"));
    }
}
