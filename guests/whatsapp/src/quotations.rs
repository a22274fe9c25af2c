//! Words of others in a message. WhatsApp says of a reply which message it is to, and not what that
//! says.

use agent_host_sdk::{Quotation, QuotationKind};
use serde_json::Value;

/// Returns true if a message was passed on. It then says nothing of its sender's own.
pub(crate) fn is_forwarded(message: &Value) -> bool {
    let context = &message["context"];
    context["forwarded"] == true || context["frequently_forwarded"] == true
}

/// The words of a message that was passed on. WhatsApp tells nobody who wrote them.
pub(crate) fn forwarded(text: String) -> Quotation {
    Quotation {
        kind: QuotationKind::Forwarded,
        author: None,
        text,
    }
}

/// The id of the message that is replied to, or reacted to.
pub(crate) fn replied_to(message: &Value) -> Option<&str> {
    let reaction = &message["reaction"]["message_id"];
    message["context"]["id"].as_str().or(reaction.as_str())
}

/// Returns the things from which a message was written: a product, or an advertisement.
pub(crate) fn quoted(message: &Value) -> Vec<Quotation> {
    let context = &message["context"];
    let said = |value: &Value| {
        value
            .as_str()
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    let quoted = |author: Option<String>, text: String| Quotation {
        kind: QuotationKind::Quoted,
        author,
        text,
    };
    let product = said(&context["referred_product"]["product_retailer_id"])
        .map(|id| quoted(None, format!("[the product {id}]")));
    let referral = &message["referral"];
    let advertisement: Vec<String> = ["headline", "body", "source_url"]
        .iter()
        .filter_map(|key| said(&referral[*key]))
        .collect();
    let advertisement = (!advertisement.is_empty())
        .then(|| quoted(Some("advertisement".to_owned()), advertisement.join("\n")));
    [product, advertisement].into_iter().flatten().collect()
}
