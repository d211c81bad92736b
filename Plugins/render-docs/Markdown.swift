import Foundation
import HTML

/// Renders the part of Markdown that the OpenAPI document uses: headings, paragraphs, lists, tables, code, bold and
/// emphasized text, and links. Everything else is text.
struct Markdown {
  /// A heading of `level` 2 or more, and the anchor to link to.
  struct Heading {
    let level: Int
    let title: String
    let anchor: String
  }

  /// Text in quotation marks that is the title of one of these headings becomes a link to it.
  private let anchors: [String: String]

  init(linkingTo headings: [Heading] = []) {
    anchors = Dictionary(headings.map { ($0.title, $0.anchor) }) { first, _ in first }
  }

  static func headings(in text: String) -> [Heading] {
    lines(of: text).filter { kind(of: $0) == .heading }.map(heading)
  }

  // MARK: Blocks

  private enum Kind {
    case blank, heading, table, item, fence, paragraph
  }

  /// The blocks of a text as HTML.
  func html(_ text: String) -> String {
    var lines = Self.lines(of: text)[...]
    var html = ""
    while let line = lines.first {
      switch Self.kind(of: line) {
      case .blank: lines.removeFirst()
      case .heading:
        let heading = Self.heading(lines.removeFirst())
        html += "<h\(heading.level) id=\"\(heading.anchor)\">\(heading.title.htmlEscaped)</h\(heading.level)>\n"
      case .table: html += table(Self.take(from: &lines) { Self.kind(of: $0) == .table })
      case .item: html += list(Self.take(from: &lines) { Self.kind(of: $0) == .item || $0.hasPrefix("  ") })
      case .fence:
        lines.removeFirst()
        let code = Self.take(from: &lines) { Self.kind(of: $0) != .fence }
        lines = lines.dropFirst()
        html += "<pre><code>\(code.joined(separator: "\n").htmlEscaped)</code></pre>\n"
      case .paragraph:
        let text = Self.take(from: &lines) { Self.kind(of: $0) == .paragraph }
        html += "<p>\(inline(text.joined(separator: " ")))</p>\n"
      }
    }
    return html
  }

  private func table(_ lines: [Substring]) -> String {
    let rows = lines.map { line in
      let cells = line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
      return cells.map { inline($0.trimmingCharacters(in: .whitespaces)) }
    }
    func row(_ cells: [String], _ tag: String) -> String {
      "<tr>" + cells.map { "<\(tag)>\($0)</\(tag)>" }.joined() + "</tr>\n"
    }
    let head = row(rows[0], "th")
    // The second line only separates the head from the body.
    let body = rows.dropFirst(2).map { row($0, "td") }.joined()
    return "<table>\n<thead>\n\(head)</thead>\n<tbody>\n\(body)</tbody>\n</table>\n"
  }

  private func list(_ lines: [Substring]) -> String {
    let tag = lines[0].hasPrefix("- ") ? "ul" : "ol"
    var items: [String] = []
    for line in lines {
      if Self.kind(of: line) == .item {
        items.append(String(line.drop { $0 != " " }.dropFirst()))
      } else {
        items[items.count - 1] += " " + line.trimmingCharacters(in: .whitespaces)
      }
    }
    return "<\(tag)>\n" + items.map { "<li>\(inline($0))</li>\n" }.joined() + "</\(tag)>\n"
  }

  private static func lines(of text: String) -> [Substring] {
    text.split(separator: "\n", omittingEmptySubsequences: false)
  }

  private static func kind(of line: Substring) -> Kind {
    if line.allSatisfy({ $0 == " " }) { return .blank }
    if line.hasPrefix("## ") || line.hasPrefix("### ") { return .heading }
    if line.hasPrefix("|") { return .table }
    if line.prefixMatch(of: /(-|[0-9]+\.)\s/) != nil { return .item }
    return line.hasPrefix("```") ? .fence : .paragraph
  }

  private static func heading(_ line: Substring) -> Heading {
    let title = line.drop { $0 == "#" }.trimmingCharacters(in: .whitespaces)
    let anchor: [Character] = title.lowercased().map { $0.isLetter || $0.isNumber ? $0 : "-" }
    return Heading(level: line.prefix { $0 == "#" }.count, title: title, anchor: String(anchor))
  }

  private static func take(from lines: inout ArraySlice<Substring>, while belongs: (Substring) -> Bool) -> [Substring] {
    let taken = lines.prefix(while: belongs)
    lines = lines.dropFirst(taken.count)
    return Array(taken)
  }

  // MARK: Text

  /// A text without blocks as HTML.
  func inline(_ text: String) -> String {
    var rest = text[...]
    var html = ""
    while let next = rest.first {
      if let (code, after) = Self.enclosed(in: "`", rest) {
        html += "<code>\(code.htmlEscaped)</code>"
        rest = after
      } else if let (bold, after) = Self.enclosed(in: "**", rest) {
        html += "<strong>\(inline(String(bold)))</strong>"
        rest = after
      } else if let (emphasized, after) = Self.enclosed(in: "*", rest) {
        html += "<em>\(inline(String(emphasized)))</em>"
        rest = after
      } else if let (title, after) = Self.enclosed(in: "\"", rest), let anchor = anchors[String(title)] {
        html += "“<a href=\"#\(anchor)\">\(title.htmlEscaped)</a>”"
        rest = after
      } else if next == "[", let link = rest.prefixMatch(of: /\[([^\]]+)\]\((https:\/\/[^)\s]+)\)/) {
        html += "<a href=\"\(link.2.htmlEscaped)\">\(inline(String(link.1)))</a>"
        rest = rest[link.range.upperBound...]
      } else {
        html += String(next).htmlEscaped
        rest.removeFirst()
      }
    }
    return html
  }

  /// The text between a mark at its start and the next mark, and the rest.
  private static func enclosed(in mark: String, _ text: Substring) -> (inner: Substring, rest: Substring)? {
    guard text.hasPrefix(mark) else { return nil }
    let body = text.dropFirst(mark.count)
    guard let end = body.firstRange(of: mark), end.lowerBound > body.startIndex else { return nil }
    return (body[..<end.lowerBound], body[end.upperBound...])
  }
}
