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
