//! Pages of all kinds, and what is said of them.

use crate::html::{Page, page};
use std::fmt::Write;
use std::time::Instant;
use url::Url;

fn read(source: &str) -> Page {
    page(
        source.to_owned(),
        &Url::parse("https://example.com/a/page").unwrap(),
    )
}

#[track_caller]
fn check(source: &str, expected: &str) {
    assert_eq!(read(source).text, expected, "{source:.1000}");
}

#[test]
fn headings_paragraphs_and_breaks_are_blocks_and_lines() {
    check(
        "<h1>One</h1><p>Two\n  three<p>Four<br>five<h3>Six</h3>",
        "# One\n\nTwo three\n\nFour\nfive\n\n### Six",
    );
    check(
        "a<br><br>b<hr>c<div>d<div>e</div></div>f",
        "a\n\nb\n\n---\n\nc\n\nd\n\ne\n\nf",
    );
    check("<p></p><div> </div><p>only</p><p>\n</p>", "only");
    check(
        "one<span> two </span><b>th</b>ree&nbsp;four",
        "one two three\u{a0}four",
    );
}

#[test]
fn entities_are_characters() {
    check(
        "<p>&lt;b&gt; &amp;amp; &copy; &eacute; &#8364; &#x1F600; &hellip; &noentity; &amp",
        "<b> &amp; © é € 😀 … &noentity; &",
    );
}

#[test]
fn lists_nest() {
    check(
        "<p>Buy:<ul><li>milk<li>bread<ul><li>white<li>brown <p>or both</p></ul><li>tea</ul>then",
        "Buy:\n\n- milk\n- bread\n  - white\n  - brown\n    or both\n- tea\n\nthen",
    );
    check(
        "<ol start=3><li>c<li><p>d</p><p>e</p><ul><li>f</ul></ol>",
        "3. c\n4. d\n   e\n   - f",
    );
    check("<ul><li></li><li><ul><li>deep</ul></ul>", "- - deep");
    check(
        "<dl><dt>Term<dd>What it<br>means<dt>Other<dd>thing</dl>",
        "Term\n: What it\n  means\nOther\n: thing",
    );
}

#[test]
fn quotations_stand_behind_a_mark_on_each_line() {
    check(
        "<p>He said:<blockquote><p>One<p>Two<ul><li>a<li>b</ul></blockquote>End",
        "He said:\n\n> One\n>\n> Two\n>\n> - a\n> - b\n\nEnd",
    );
}

#[test]
fn links_have_whole_addresses() {
    check(
        "<a href=/x?a=1&amp;b=2>x</a>, <a href='y z'> y</a>.",
        "[x](https://example.com/x?a=1&b=2), [y](https://example.com/a/y%20z).",
    );
    check(
        "<a href=//other.org/(a)>o</a>",
        "[o](https://other.org/%28a%29)",
    );
    check(
        "<a href=mailto:a@example.com>mail</a>",
        "[mail](mailto:a@example.com)",
    );
    check(
        "<ul><li><a href=x>first</a> word</ul>",
        "- [first](https://example.com/a/x) word",
    );
    check(
        "<a href=https://example.com/>https://example.com/</a>",
        "https://example.com/",
    );
}

#[test]
fn links_that_lead_nowhere_are_words() {
    for href in [
        "#part",
        "javascript:alert(1)",
        "data:text/html,x",
        " ",
        "http://[",
        "JaVaScRiPt:x",
        "file:///etc/passwd",
    ] {
        check(&format!("<p><a href='{href}'>word</a>"), "word");
    }
    check(
        "<a>anchor</a> <a href=x></a><a href=x><img src=y></a>end",
        "anchor end",
    );
}

#[test]
fn a_base_moves_the_links() {
    check(
        "<base href=/other/><a href=x>x</a>",
        "[x](https://example.com/other/x)",
    );
    check(
        "<head><base target=_blank><base href=https://b.org/c/></head><a href=../x>x</a>",
        "[x](https://example.com/x)",
    );
    check("<base href='javascript:x'><a href=y>x</a>", "x");
}

#[test]
fn a_link_around_blocks_is_followed_by_its_address() {
    check(
        "<a href=x><h2>Head</h2><p>Text</p></a>",
        "## Head\n\nText <https://example.com/a/x>",
    );
    check(
        "<a href=x><h2>Head</h2></a>",
        "## [Head](https://example.com/a/x)",
    );
}

#[test]
fn code_stands_as_it_is() {
    check(
        "<p>Run <code>ls  -l</code>:<pre><code class='hl language-sh'>\nfor x in *; do\n  echo \
         &lt;$x&gt;\n\ndone\n</code></pre>ok",
        "Run `ls -l`:\n\n```sh\nfor x in *; do\n  echo <$x>\n\ndone\n```\n\nok",
    );
    check("<pre>a<br>b```c</pre>", "````\na\nb```c\n````");
    check(
        "<ul><li>x<pre>  one\ntwo</pre></ul>",
        "- x\n\n  ```\n    one\n  two\n  ```",
    );
    check("<pre>\n\n</pre><code></code>none", "none");
}

#[test]
fn tables_have_rows_and_columns() {
    check(
        "<table><caption>Prices</caption><thead><tr><th>What<th>How | much</thead><tr><td><a \
         href=x>Tea</a><td>1<br>2<tr><td>Milk<td></table>.",
        "Prices\n\n| What | How \\| much |\n| --- | --- |\n| [Tea](https://example.com/a/x) | 1 2 \
         |\n| Milk |  |\n\n.",
    );
}

#[test]
fn tables_that_arrange_a_page_are_blocks() {
    check(
        "<table><tr><td><h1>Head</h1><tr><td><p>Left<td><table><tr><td>a<td>b</table></table>",
        "# Head\n\nLeft\n\n| a | b |\n| --- | --- |",
    );
    check("<table><tr><td>alone</table>", "alone");
}

#[test]
fn pictures_are_what_they_are_called() {
    check(
        "<img src=a.png alt=' A  cat '><img src=b.png><svg><title>Icon</title><text>x</text></svg>",
        "[image: A cat]",
    );
}

#[test]
fn what_acts_navigates_or_is_hidden_is_not_there() {
    for source in [
        "<script>alert('<p>x</p>')</script>",
        "<style>p{}</style>",
        "<nav><a href=x>Home</a></nav>",
        "<div role=navigation>Home</div>",
        "<!-- <p>x -->",
        "<template><p>x</template>",
        "<iframe src=x>x</iframe>",
        "<button>Buy</button><select><option>x</select><textarea>x</textarea><input value=x>",
        "<p hidden>x</p>",
        "<p aria-hidden=true>x</p>",
        "<p style='color: red; DISPLAY : none !important'>x</p>",
        "<p style=visibility:hidden>x</p>",
        "<p style='opacity: 0.0'>x</p>",
        "<p style='font-size:0px'>x</p>",
        "<dialog>x</dialog>",
        "<svg><script>x</script><style>x</style></svg>",
        "<pre><span hidden>x</span><button>x</button><script>x</script></pre>",
        "<script>document.write('</scr' + 'ipt>')<!-- <script> </script>",
    ] {
        assert!(
            !read(&format!("before{source}after")).text.contains('x'),
            "{source}"
        );
    }
    check(
        "<noscript>Shown without <b>scripts</b></noscript>",
        "Shown without scripts",
    );
    check("<p style='opacity:0.5;font-size:10px'>faint</p>", "faint");
    check(
        "<p hidden=until-found>found</p><details><summary>More</summary>inside</details>",
        "found\n\nMore\n\ninside",
    );
}

#[test]
fn scripts_in_odd_places_stay_scripts() {
    check(
        "<p>a<svg/onload=alert(1)>b<img src=x onerror=alert(1)>c",
        "ac",
    );
    check("<math><mi>x</mi></math><p>b", "x\n\nb");
    check(
        "<title>T</title><title><script>alert(1)</script></title>ok",
        "ok",
    );
    check("<p>1<scr<script>ipt>alert(1)</script>2", "1ipt>alert(1)2");
    check(
        "<noscript><p title=\"</noscript><script>alert(1)</script>\">x</noscript>",
        "x",
    );
}

#[test]
fn a_main_element_that_says_something_is_all_that_is_read() {
    let long = "word ".repeat(60);
    let text = read(&format!(
        "<header>Site</header><main><h1>Head</h1>{long}</main><footer>Legal</footer>"
    ))
    .text;
    assert!(
        text.starts_with("# Head\n\nword word")
            && !text.contains("Site")
            && !text.contains("Legal"),
        "{text}"
    );
    check("<header>Site</header><main>Little</main>", "Site\n\nLittle");
    let two = read(&format!(
        "<main>{long}</main><div role=main>{long}other</div>"
    ))
    .text;
    assert!(two.ends_with("other") && two.starts_with("word"));
}

#[test]
fn malformed_pages_are_read_as_browsers_do() {
    check("<p>a<b>b<i>c</b>d</i><p>e</div></span>f", "abcd\n\nef");
    check(
        "<table><tr>stray<td>a<td>b</table>",
        "stray\n\n| a | b |\n| --- | --- |",
    );
    check("</p><li>x</ul><h1>y</h2>z", "- x\n\n  # y\n\n  z");
    check("<p <b>x</p>y < z &", "x\n\ny < z &");
    check("<div><p>a<div", "a");
    check("\u{0}<p>a\u{0}b", "ab");
    assert_eq!(
        read("<title>a &amp; b</title>"),
        Page {
            title: Some("a & b".into()),
            text: String::new(),
            whole: true,
            next: None,
        }
    );
    assert_eq!(
        read(""),
        Page {
            title: None,
            text: String::new(),
            whole: true,
            next: None,
        }
    );
}

#[test]
fn the_title_is_the_pages_and_not_that_of_a_picture() {
    assert_eq!(
        read("<body><svg><title>Icon</title></svg><title>Late</title>")
            .title
            .as_deref(),
        Some("Late")
    );
    assert_eq!(read("<title> </title>").title, None);
    assert_eq!(
        read(&format!("<title>{}</title>", "x".repeat(5_000)))
            .title
            .unwrap()
            .len(),
        300
    );
}

/// Each is a page that makes a careless program recurse, or work by the square of its length.
#[test]
fn hostile_pages_end_soon_and_keep_their_text() {
    let hostile: [(&str, String); 12] = [
        (
            "divs",
            format!(
                "{}deep{}<p>end",
                "<div>".repeat(10_000),
                "</div>".repeat(10_000)
            ),
        ),
        ("many divs", format!("{}<p>end", "<div>".repeat(50_000))),
        ("lists", format!("{}deep<p>end", "<ul><li>".repeat(10_000))),
        (
            "quotes",
            format!("{}deep<p>end", "<blockquote>".repeat(10_000)),
        ),
        (
            "tables",
            format!("{}deep<p>end", "<table><tr><td>".repeat(10_000)),
        ),
        (
            "links",
            format!("{}deep<p>end", "<a href=x>".repeat(20_000)),
        ),
        (
            "formatting",
            format!(
                "{}<p>end",
                (0..20_000).fold(String::new(), |mut all, n| {
                    let _ = write!(all, "<p><b c={n}>x");
                    all
                })
            ),
        ),
        (
            "misnested",
            format!("{}<p>end", "<a><b><i><u><p></a></b>".repeat(10_000)),
        ),
        (
            "pictures",
            format!("{}deep<p>end", "<svg><g>".repeat(10_000)),
        ),
        (
            "templates",
            format!("{}</template>deep<p>end", "<template>".repeat(10_000)),
        ),
        (
            "attributes",
            format!(
                "<p {}>end",
                (0..20_000).fold(String::new(), |mut all, n| {
                    let _ = write!(all, "a{n}=b ");
                    all
                })
            ),
        ),
        ("open tags", format!("<p>end{}", "<".repeat(100_000))),
    ];
    for (name, source) in hostile {
        let begun = Instant::now();
        let page = read(&source);
        assert!(
            begun.elapsed().as_secs() < 20,
            "{name}: {:?}",
            begun.elapsed()
        );
        // What is within a template or a picture is not shown, and these never end.
        let is_unshown = matches!(name, "templates" | "pictures");
        assert!(
            is_unshown || !page.whole || page.text.contains("end"),
            "{name}: {} characters",
            page.text.len()
        );
    }
    assert!(
        read(&format!("{}deep", "<div>".repeat(10_000)))
            .text
            .contains("deep")
    );
}

#[test]
fn of_a_tag_that_is_too_long_the_beginning_is_read_and_nothing_behind_it_is_lost() {
    let names = (0..40_000).fold(String::new(), |mut all, n| {
        let _ = write!(all, " a{n}");
        all
    });
    check(
        &format!("<a href=/x{names}>link</a><p>end"),
        "[link](https://example.com/x)\n\nend",
    );
    for quote in ["\"", "'"] {
        check(
            &format!(
                "<p title={quote}it is > here{names}{quote} class=c{names}>shown</p><a \
                      href=/y>y</a>"
            ),
            "shown\n\n[y](https://example.com/y)",
        );
    }
    check(
        &format!(
            "a<!-- {names} - -> \" {names} -->b<script>if (a <b{names} \" -->) {{}}</script>c"
        ),
        "abc",
    );
    check(&format!("<p>a <b{names}"), "a");
}

#[test]
fn a_page_of_too_many_nodes_is_cut_and_says_so() {
    let page = read(&"<p>x</p>".repeat(200_000));
    assert!(!page.whole && page.text.starts_with("x\n\nx"));
}
