import Testing

@testable import render_docs

@Suite struct MarkdownTests {
  @Test(arguments: [
    ("Muster & <friends>", "Muster &amp; &lt;friends&gt;"),
    ("`a < \"b\"`, *c*", "<code>a &lt; &#34;b&#34;</code>, <em>c</em>"),
    ("**`a` b** c", "<strong><code>a</code> b</strong> c"),
    ("See \"Safe repeats\".", "See “<a href=\"#safe-repeats\">Safe repeats</a>”."),
    ("See \"others\".", "See &#34;others&#34;."),
    ("[a `b`](https://example.com/?c=\"d\")", "<a href=\"https://example.com/?c=&#34;d&#34;\">a <code>b</code></a>"),
    ("[a](javascript:b) 2 * 3 `c", "[a](javascript:b) 2 * 3 `c"),
  ])
  func `marked text becomes HTML, and everything else is escaped`(markdown: String, html: String) {
    let headings = Markdown.headings(in: "Before\n\n## Safe repeats\n\nAfter")
    #expect(Markdown(linkingTo: headings).inline(markdown) == html)
  }

  @Test(arguments: [
    ("One\ntwo\n\nthree\n", "<p>One two</p>\n<p>three</p>\n"),
    ("## A & B\ntext", "<h2 id=\"a---b\">A &amp; B</h2>\n<p>text</p>\n"),
    ("### With Apple\n", "<h3 id=\"with-apple\">With Apple</h3>\n"),
    ("- one\n  two\n- `three`\n\nfour", "<ul>\n<li>one two</li>\n<li><code>three</code></li>\n</ul>\n<p>four</p>\n"),
    ("1. one\n2. two", "<ol>\n<li>one</li>\n<li>two</li>\n</ol>\n"),
    (
      "| a | `b` |\n|---|---|\n| | <c> |",
      "<table>\n<thead>\n<tr><th>a</th><th><code>b</code></th></tr>\n</thead>\n<tbody>\n"
        + "<tr><td></td><td>&lt;c&gt;</td></tr>\n</tbody>\n</table>\n"
    ),
    ("```\n# a\n\n<b>\n```\nc", "<pre><code># a\n\n&lt;b&gt;</code></pre>\n<p>c</p>\n"),
    ("```\nno end", "<pre><code>no end</code></pre>\n"), ("", ""),
  ])
  func `each kind of block becomes its element`(markdown: String, html: String) {
    #expect(Markdown().html(markdown) == html)
  }
}
