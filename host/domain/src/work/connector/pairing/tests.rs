//! Pairing codes: their signs, their time and their number.

use super::*;

const NOW: Timestamp = Timestamp(1_000);

#[test]
fn a_code_has_no_sign_that_looks_like_another() {
    let code = PairingCode::from_random([0, 1, 7, 8, 31, 32, 254, 255]);
    assert_eq!(code.as_str().len(), PAIRING_CODE_CHARS);
    for byte in 0..=255_u8 {
        assert!(!"01IO".contains(sign(byte)), "{byte}");
    }
}

#[test]
fn every_sign_of_a_code_is_as_likely_as_any_other() {
    for sign_of_alphabet in ALPHABET {
        let bytes = (0..=255_u8).filter(|byte| sign(*byte) == char::from(*sign_of_alphabet));
        assert_eq!(bytes.count(), 8);
    }
}

#[test]
fn a_code_is_read_as_people_write_it() {
    let code: PairingCode = "K4F7Z2QX".parse().unwrap();
    for written in ["k4f7z2qx", "K4F7-Z2QX", " k4f7 z2qx "] {
        assert_eq!(written.parse(), Ok(code.clone()), "{written}");
    }
    for wrong in [
        "",
        "K4F7Z2Q",
        "K4F7Z2QXX",
        "K4F7Z2Q0",
        "K4F7Z2QI",
        "K4F7Z2Qé",
    ] {
        assert_eq!(wrong.parse::<PairingCode>(), Err(NotACode), "{wrong}");
    }
}

#[test]
fn a_code_counts_for_an_hour() {
    let PairingOffer::New { expires } = PairingOffer::new(0, 0, NOW) else {
        panic!("no offer")
    };
    assert_eq!(expires, NOW.plus_ms(3_600_000));
    assert_eq!(confirm(expires, Timestamp(expires.0 - 1)), Ok(()));
    assert_eq!(confirm(expires, expires), Err(PairingRefused::Expired));
}

#[test]
fn a_sender_and_a_connector_have_so_many_codes() {
    for (of_sender, of_connector, offers) in [
        (PAIRINGS_OF_SENDER_MAX - 1, 10, true),
        (PAIRINGS_OF_SENDER_MAX, 10, false),
        (0, PAIRINGS_MAX - 1, true),
        (0, PAIRINGS_MAX, false),
    ] {
        let offer = PairingOffer::new(of_sender, of_connector, NOW);
        assert_eq!(offer != PairingOffer::Nothing, offers);
    }
}
