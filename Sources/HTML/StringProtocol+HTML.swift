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
