import Metrics
import Postgres
import Synchronization

/// All metrics of this process. They include those of libraries, such as the database client, that are set up under
/// ``measuring(_:)``.
///
/// Code that counts something keeps its cell, so that counting needs no lookup.
public final class MetricsRegistry: MetricsFactory {
  private struct Family: Sendable {
    let kind: MetricKind
    /// By their labels, as they are printed. Gauges with the same labels, such as those of two databases, are added up.
    var series: [String: [any MetricCell]] = [:]
  }

  private struct Watched: Sendable {
    let help: String
    let read: @Sendable () -> Double
  }

  /// Series of one name. More than that is a misuse of labels.
  private static let maximumSeries = 1000
  private static let help = [
    "http_requests_total": "Requests, by route and class of status.",
    "http_request_duration_seconds": "Time from a request's head to its response's head, by route.",
    "muster_accept_failures_total": "Failures to accept connections, for example because too many files are open.",
    "muster_connections_refused_total": "Connections refused, by limit.",
    "muster_deliveries_total": "Delivery attempts, by channel and outcome.",
    "muster_delivery_duration_seconds": "How long delivery attempts took, by channel.",
    "muster_mails_admitted_total": "Mails to unproven addresses that the gate admitted.",
    "muster_mails_held_total": "Mails that the gate held back, by limit.",
    "muster_untrusted_proxy_requests_total":
      "Requests with X-Forwarded-For from a sender that is not a trusted proxy.",
    "postgres_statement_seconds": "How long batches of statements took, including the time in the queue.",
    "postgres_pool_wait_seconds": "How long transactions waited for a connection.",
    "postgres_connections_opened_total": "Database connections opened.",
    "postgres_connections_closed_total": "Database connections closed.",
    "postgres_pool_waiting": "Transactions waiting for a connection.",
    "postgres_pool_connections_taken": "Connections held by transactions.",
  ]

  private let families = Mutex<[String: Family]>([:])
  private let watched = Mutex<[String: Watched]>([:])

  let startedAt = Timestamp.now()

  public init() {}

  /// Makes a value whose own metrics are reported here.
  func measuring<Value>(_ make: () throws -> Value) throws -> Value {
    try withMetricsFactory(self, make)
  }

  func cell<Cell: MetricCell>(_ name: String, _ labels: [(String, String)] = [], of type: Cell.Type) -> Cell {
    let name = MetricsText.name(name)
    let labels = MetricsText.labels(labels)
    return families.withLock { families in
      var family = families[name] ?? Family(kind: Cell.kind)
      if Cell.kind != .gauge, let known = family.series[labels]?.first as? Cell { return known }
      let made = Cell()
      // A cell that cannot be shown still counts.
      guard family.kind == Cell.kind, family.series[labels] != nil || family.series.count < Self.maximumSeries else {
        return made
      }
      family.series[labels, default: []].append(made)
      families[name] = family
      return made
    }
  }

  /// Adds a gauge that is read whenever the metrics are requested.
  func watch(_ name: String, _ help: String, _ read: @escaping @Sendable () -> Double) {
    watched.withLock { $0[name] = Watched(help: help, read: read) }
  }

  func write(to text: inout MetricsText) {
    for (name, family) in families.withLock({ $0 }).sorted(by: { $0.key < $1.key }) {
      text.family(name, family.kind, Self.help[name] ?? name)
      for (labels, cells) in family.series.sorted(by: { $0.key < $1.key }) {
        switch family.kind {
        case .counter:
          let total = cells.reduce(Int64(0)) { $0 + (($1 as? CounterCell)?.value ?? 0) }
          // Cells exist for everything that could happen. Those that are still zero need no line.
          if total > 0 || labels.isEmpty { text.sample(name, labels, Double(total)) }
        case .gauge:
          text.sample(name, labels, cells.reduce(0.0) { $0 + (($1 as? GaugeCell)?.value ?? 0) })
        case .histogram:
          guard let totals = (cells.first as? HistogramCell)?.totals, totals.count > 0 || labels.isEmpty else {
            continue
          }
          text.histogram(name, labels, totals)
        }
      }
    }
    for (name, gauge) in watched.withLock({ $0 }).sorted(by: { $0.key < $1.key }) {
      text.family(name, .gauge, gauge.help)
      text.sample(name, "", gauge.read())
    }
  }

  // MARK: MetricsFactory

  public func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
    cell(label, dimensions, of: CounterCell.self)
  }

  public func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
    cell(label, dimensions, of: GaugeCell.self)
  }

  public func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
    if aggregate { return cell(label, dimensions, of: HistogramCell.self) }
    return cell(label, dimensions, of: GaugeCell.self)
  }

  public func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
    cell(label, dimensions, of: HistogramCell.self)
  }

  // Cells live as long as the process.
  public func destroyCounter(_ handler: any CounterHandler) {}
  public func destroyMeter(_ handler: any MeterHandler) {}
  public func destroyRecorder(_ handler: any RecorderHandler) {}
  public func destroyTimer(_ handler: any TimerHandler) {}
}

/// Counts the requests of an endpoint. Its cells exist beforehand, so a count waits for no other request.
struct RequestMetrics: Sendable {
  private let duration: HistogramCell
  /// By the first digit of the status.
  private let responses: [CounterCell]

  /// - Parameters:
  ///   - method: the label `method`.
  ///   - route: the label `route`, such as `/api/v1/events/{id}`.
  init(_ method: String, _ route: String, in metrics: MetricsRegistry) {
    let labels = [("method", method), ("route", route)]
    duration = metrics.cell("http_request_duration_seconds", labels, of: HistogramCell.self)
    responses = (1...5).map {
      metrics.cell("http_requests_total", labels + [("status", "\($0)xx")], of: CounterCell.self)
    }
  }

  func count(_ status: Int, after duration: Duration) {
    self.duration.record(duration)
    responses[min(max(status / 100, 1), 5) - 1].increment(by: 1)
  }
}

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
