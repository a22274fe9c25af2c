//! Texts as each service gets them.

use super::*;

#[test]
fn marks_are_those_of_the_service() {
    for (text, expected) in [
        (
            "# Title\n\nSome **bold**, *slanted* and ~~gone~~ `code`.",
            [
                "<b>Title</b>\n\nSome <b>bold</b>, <i>slanted</i> and <s>gone</s> <code>code</code>.",
                "*Title*\n\nSome *bold*, _slanted_ and ~gone~ `code`.",
                "*Title*\n\nSome *bold*, _slanted_ and ~gone~ `code`.",
            ],
        ),
        (
            "- one\n- two\n   1. first\n   2. second",
            [
                "• one\n• two\n   1. first\n   2. second",
                "• one\n• two\n   1. first\n   2. second",
                "• one\n• two\n   1. first\n   2. second",
            ],
        ),
        (
            "```rust\nlet a = 1 < 2;\n```\nafter",
            [
                "<pre>let a = 1 &lt; 2;</pre>\n\nafter",
                "```\nlet a = 1 < 2;\n```\n\nafter",
                "```\nlet a = 1 &lt; 2;\n```\n\nafter",
            ],
        ),
        (
            "See [the page](https://a.com/?b=1&c=2).",
            [
                "See <a href=\"https://a.com/?b=1&amp;c=2\">the page</a>.",
                "See the page (https://a.com/?b=1&c=2).",
                "See <https://a.com/?b=1&amp;c=2|the page>.",
            ],
        ),
        (
            "> quoted\n> twice",
            [
                "<blockquote>quoted\ntwice</blockquote>",
                "> quoted\n> twice",
                "> quoted\n> twice",
            ],
        ),
    ] {
        assert_eq!(
            [telegram(text), whatsapp(text), slack(text)],
            expected,
            "{text}"
        );
    }
}

#[test]
fn what_looks_like_a_services_own_marks_is_shown_as_it_is() {
    assert_eq!(
        telegram("a < b && <script>"),
        "a &lt; b &amp;&amp; &lt;script&gt;"
    );
    assert_eq!(
        slack("<!channel> & <@U1>"),
        "&lt;!channel&gt; &amp; &lt;@U1&gt;"
    );
    let hostile = "[click](javascript:alert(1))";
    assert_eq!(telegram(hostile), "click (javascript:alert(1))");
    assert_eq!(slack(hostile), "click (javascript:alert(1))");
}

#[test]
fn a_table_is_shown_row_by_row() {
    let table = "| a | b |\n|---|---|\n| 1 | 2 |\n";
    assert_eq!(plain(table), "a | b\n1 | 2");
}
