//! Tests of the audit record of a call.

use super::*;
use domain::secret::Secret;

fn about(capability: &str, rule: Rule) -> Ruling {
    Ruling {
        capability: capability.to_owned(),
        allowed: rule == Rule::Granted,
        rule,
    }
}

fn bound(rulings: Vec<Ruling>) -> AuditRecorder {
    let recorder = AuditRecorder::default();
    recorder.bind(rulings);
    recorder
}

/// Returns the detail of each decision, and how often it was made.
fn counted(recorder: &AuditRecorder) -> Vec<(String, u64)> {
    let decisions = recorder.take().decisions.into_iter();
    decisions.map(|d| (d.detail, d.times)).collect()
}

#[test]
fn what_is_decided_again_is_counted_and_the_first_detail_stays() {
    let recorder = bound(vec![about("files.write", Rule::CapabilityDenylist)]);
    for path in ["/a", "/b", "/c\n"] {
        recorder.granted("files.read", || path.to_owned());
        recorder.refused("files.write", || path.to_owned());
    }
    recorder.refused("wasi:sockets", || "tcp\n".to_owned());
    let Decided {
        decisions,
        left_out,
        ..
    } = recorder.take();
    let granted = BoundaryVerdict::Granted;
    let refused = BoundaryVerdict::Refused;
    let expected = [
        ("files.read", granted, Rule::Granted, 3, "/a"),
        ("files.write", refused, Rule::CapabilityDenylist, 3, "/a"),
        ("wasi:sockets", refused, Rule::NotGranted, 1, "tcp\\n"),
    ];
    assert_eq!((decisions.len(), left_out), (expected.len(), 0));
    for (made, expected) in decisions.iter().zip(expected) {
        let capability = made.capability.as_str();
        let made = (
            capability,
            made.verdict,
            made.rule,
            made.times,
            made.detail.as_str(),
        );
        assert_eq!(made, expected);
    }
}

#[test]
fn a_flood_of_different_decisions_is_bounded_and_counted() {
    let recorder = AuditRecorder::default();
    for n in 0..DECISIONS_RECORDED_MAX + 5 {
        recorder.limited(&format!("c{n}"), String::new);
    }
    let Decided {
        decisions,
        left_out,
        ..
    } = recorder.take();
    assert_eq!((decisions.len(), left_out), (DECISIONS_RECORDED_MAX, 5));
}

#[test]
fn what_was_written_beside_a_file_is_on_record_by_the_name_of_the_file() {
    let recorder = AuditRecorder::default();
    recorder.granted("files.write", || "/w/.1.part".to_owned());
    recorder.renamed("files.write", "/w/.1.part", "/w/a.txt");
    recorder.granted("files.write", || "/w/.1.part".to_owned());
    assert_eq!(counted(&recorder), [("/w/a.txt".to_owned(), 2)]);
}

#[test]
fn every_secret_that_a_call_used_is_on_record() {
    let recorder = AuditRecorder::default();
    for secret in ["github", "gitlab", "github"] {
        recorder.used(&format!("{secret} -> api.example.com header authorization"));
    }
    let reported = counted(&recorder);
    let [(github, 2), (gitlab, 1)] = reported.as_slice() else {
        panic!("{reported:?}")
    };
    assert!(github.starts_with("github ") && gitlab.starts_with("gitlab "));
}

#[test]
fn what_others_tell_of_secrets_is_told_apart_too_and_no_half_of_one_stays() {
    let recorder = AuditRecorder::default();
    let granted = BoundaryVerdict::Granted;
    for key in ["env A -> a.example", "env B -> b.example"] {
        recorder.decided(capability::SECRETS_USE, granted, Rule::Granted, key);
    }
    assert_eq!(recorder.take().decisions.len(), 2);
    let secret = Secret::parse("CANARY-0123456789").unwrap();
    recorder.redact(&Redactor::of(&secret));
    recorder.granted("files.read", || {
        format!("{}CANARY-0123456789", "x".repeat(DETAIL_BYTES_MAX - 16))
    });
    recorder.refused("CANARY-0123456789.read", String::new);
    let reported = format!("{:?}", recorder.take().decisions);
    assert!(!reported.contains("CANARY"), "{reported}");
}

#[test]
fn the_start_and_the_end_of_a_program_are_both_on_record() {
    let recorder = AuditRecorder::default();
    let ends = ["claude-cli: started", "claude-cli: ended"];
    for reported in ends {
        recorder.decided(
            PROGRAM_RUN,
            BoundaryVerdict::Granted,
            Rule::Granted,
            reported,
        );
    }
    assert_eq!(
        counted(&recorder),
        ends.map(|reported| (reported.to_owned(), 1))
    );
}

#[test]
fn what_is_granted_and_withheld_is_refused_by_the_rule_that_withheld_it() {
    for (rule, expected) in [
        (Rule::NotAsked, Some(Rule::NotAsked)),
        (Rule::Ceiling, Some(Rule::Ceiling)),
        (Rule::NotGranted, None),
    ] {
        let recorder = bound(vec![about("env.read", rule)]);
        recorder.withheld("env.read", String::new);
        let decisions = recorder.take().decisions;
        assert_eq!(decisions.first().map(|decision| decision.rule), expected);
    }
    let recorder = AuditRecorder::default();
    recorder.withheld("env.read", String::new);
    assert!(recorder.take().decisions.is_empty());
}

#[test]
fn limits_of_a_call_are_told_apart() {
    let recorder = AuditRecorder::default();
    for limit in ["logBytesMax", "cpuMsMax", "logBytesMax"] {
        recorder.met("tools.call", limit);
    }
    let decisions = recorder.take().decisions;
    for (decision, limit) in decisions.iter().zip([("logBytesMax", 2), ("cpuMsMax", 1)]) {
        assert_eq!((decision.detail.as_str(), decision.times), limit);
        assert_eq!(decision.verdict, BoundaryVerdict::Limited);
    }
    assert_eq!(decisions.len(), 2);
}

/// The refusal of what a tool did not declare is told apart from what its component is not granted.
#[test]
fn what_a_tool_did_not_declare_is_refused_as_not_asked() {
    for (recorder, expected) in [
        (AuditRecorder::default(), Rule::NotGranted),
        (bound(vec![]), Rule::NotAsked),
        (
            bound(vec![about("net.http", Rule::NotGranted)]),
            Rule::NotGranted,
        ),
        (
            bound(vec![about("net.http", Rule::Granted)]),
            Rule::NotGranted,
        ),
    ] {
        recorder.refused("net.http", String::new);
        assert_eq!(recorder.take().decisions[0].rule, expected);
    }
}

/// A missing folder is a refusal. Where there is one and nothing was opened in it, nothing was
/// refused: the call may have failed for another reason.
#[test]
fn a_call_that_fails_and_opens_nothing_is_refused_only_without_a_folder() {
    let refused = BoundaryVerdict::Refused;
    for (rule, places, expected) in [
        (
            Rule::NotGranted,
            vec![],
            Some((refused, Rule::NotGranted, "no folder is granted")),
        ),
        (
            Rule::Granted,
            vec!["/workspace"],
            Some((
                BoundaryVerdict::Granted,
                Rule::Granted,
                "nothing was opened in /workspace; a path elsewhere is in no granted folder",
            )),
        ),
        (
            Rule::Ceiling,
            vec![],
            Some((refused, Rule::Ceiling, "no folder is granted")),
        ),
        (Rule::NotAsked, vec![], None),
    ] {
        let recorder = bound(vec![about("files.read", rule)]);
        recorder.unreached_folders(&places);
        let decisions = recorder.take().decisions;
        let reported = decisions
            .first()
            .map(|decision| (decision.verdict, decision.rule, decision.detail.as_str()));
        assert_eq!(reported, expected);
    }
    let recorder = bound(vec![about("files.read", Rule::Granted)]);
    recorder.granted("files.read", || "/workspace/a".to_owned());
    recorder.unreached_folders(&["/workspace"]);
    assert_eq!(recorder.take().decisions.len(), 1);
}

/// The component may well be granted requests.
#[test]
fn a_request_of_a_tool_that_did_not_declare_it_is_not_put_down_to_the_grant() {
    for (rulings, expected) in [
        (vec![], "GET a.example/"),
        (vec![about("net.http", Rule::NotAsked)], "GET a.example/"),
        (
            vec![about("net.http", Rule::Granted)],
            "GET a.example/: no `network` is granted",
        ),
    ] {
        let recorder = bound(rulings);
        recorder.refused_request("GET a.example/", "no `network` is granted");
        assert_eq!(recorder.take().decisions[0].detail, expected);
    }
}

/// A request that was refused is why the call failed, and no folder is missing. An inspection of
/// the environment is no reason.
#[test]
fn a_call_that_failed_after_another_refusal_does_not_seem_to_miss_a_folder() {
    for (refused, hints) in [("net.http", 0), ("env.read", 1)] {
        let recorder = bound(vec![about("files.read", Rule::Granted)]);
        recorder.refused(refused, || "elsewhere".to_owned());
        recorder.unreached_folders(&["/workspace"]);
        let decisions = recorder.take().decisions;
        let of_files = decisions.iter().filter(|it| it.capability == "files.read");
        assert_eq!(of_files.count(), hints, "{refused}: {decisions:?}");
    }
}
