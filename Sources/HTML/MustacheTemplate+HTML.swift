import Mustache

extension MustacheTemplate {
  /// A template of a page. Use it instead of `init(string:)`, whose own escaping goes by characters: a quote with a
  /// combining mark is a character that it does not know, and would end an attribute.
  public static func html(_ text: String) throws -> MustacheTemplate {
    MustacheContentTypes.register(EscapedHTML(), named: "HTML")
    return try MustacheTemplate(string: "{{% CONTENT_TYPE:HTML}}\(text)")
  }
}

private struct EscapedHTML: MustacheContentType {
  func escapeText(_ text: String) -> String { text.htmlEscaped }
}

extension StringProtocol {
  /// The text for HTML, in an element or in the value of an attribute.
  @inlinable public var htmlEscaped: String {
    var html = String.UnicodeScalarView()
    for scalar in unicodeScalars {
      switch scalar {
      case "&": html += "&amp;".unicodeScalars
      case "<": html += "&lt;".unicodeScalars
      case ">": html += "&gt;".unicodeScalars
      case "\"": html += "&#34;".unicodeScalars
      case "'": html += "&#39;".unicodeScalars
      default: html.append(scalar)
      }
    }
    return String(html)
  }
}
