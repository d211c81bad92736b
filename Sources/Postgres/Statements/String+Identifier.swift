extension String {
  /// The name in quotes, as an identifier of SQL.
  var asIdentifier: String {
    // By scalars: a quote with a combining mark is another character than a quote.
    "\"" + String(String.UnicodeScalarView(unicodeScalars.flatMap { $0 == "\"" ? ["\"", "\""] : [$0] })) + "\""
  }
}
