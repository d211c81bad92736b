import Metrics

/// Metrics in Prometheus text format.
struct MetricsText {
  private(set) var text = ""

  mutating func family(_ name: String, _ kind: MetricKind, _ help: String) {
    text += "# HELP \(name) \(help.replacing("\\", with: "\\\\").replacing("\n", with: "\\n"))\n"
    text += "# TYPE \(name) \(kind.rawValue)\n"
  }

  /// - Parameter labels: the result of ``labels(_:)``.
  mutating func sample(_ name: String, _ labels: String, _ value: Double) {
    let number = value.rounded() == value && abs(value) < 1e15 ? String(Int64(value)) : "\(value)"
    text += labels.isEmpty ? "\(name) \(number)\n" : "\(name){\(labels)} \(number)\n"
  }

  mutating func histogram(_ name: String, _ labels: String, _ totals: (upTo: [Int64], count: Int64, seconds: Double)) {
    let separator = labels.isEmpty ? "" : ","
    for (bound, count) in zip(HistogramCell.bounds, totals.upTo) {
      sample("\(name)_bucket", "\(labels)\(separator)le=\"\(bound)\"", Double(count))
    }
    sample("\(name)_bucket", "\(labels)\(separator)le=\"+Inf\"", Double(totals.count))
    sample("\(name)_sum", labels, totals.seconds)
    sample("\(name)_count", labels, Double(totals.count))
  }

  static func labels(_ labels: [(String, String)]) -> String {
    labels.map { label, value -> String in
      let escaped = value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
      return "\(name(label))=\"\(escaped)\""
    }.joined(separator: ",")
  }

  /// A valid metric name, with underscores for invalid characters.
  static func name(_ text: String) -> String {
    let name = String(
      text.map { character -> Character in
        character.isASCII && (character.isLetter || character.isNumber) ? character : "_"
      })
    return name.first?.isNumber == true ? "_" + name : name
  }
}
