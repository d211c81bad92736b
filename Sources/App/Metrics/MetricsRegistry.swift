import Metrics
import Postgres
import Synchronization

/// All that this process counts and measures. What libraries report, such as the database's client, is among it, if they
/// are made under ``measuring(_:)``.
///
/// Whoever counts something holds its cell, and looks nothing up.
public final class MetricsRegistry: MetricsFactory {
  private struct Family: Sendable {
    let kind: MetricKind
    /// By their labels, as they are printed. Gauges of the same labels, such as two databases', are added up.
    var series: [String: [any MetricCell]] = [:]
  }

  private struct Watched: Sendable {
    let help: String
    let read: @Sendable () -> Double
  }

  /// Of one name. More than that, and labels are misused for what nobody can look at.
  private static let maximumSeries = 1000
  private static let help = [
    "http_requests_total": "Requests answered, by route and class of status.",
    "http_request_duration_seconds": "From a request's head to its answer's, by route.",
    "muster_accept_failures_total": "Times that connections could not be accepted, such as for want of open files.",
    "muster_connections_refused_total": "Connections closed at once, by the limit that they exceeded.",
    "muster_deliveries_total": "Attempts to deliver, by channel and what came of them.",
    "muster_delivery_duration_seconds": "How long attempts to deliver took, by channel.",
    "postgres_statement_seconds": "How long batches of statements took, their queue included.",
    "postgres_pool_wait_seconds": "How long transactions waited for a connection.",
    "postgres_connections_opened_total": "Connections to the database that were opened.",
    "postgres_connections_closed_total": "Connections to the database that were closed.",
    "postgres_pool_waiting": "Transactions that wait for a connection.",
    "postgres_pool_connections_taken": "Connections that transactions have.",
  ]

  private let families = Mutex<[String: Family]>([:])
  private let watched = Mutex<[String: Watched]>([:])

  let startedAt = Timestamp.now()

  public init() {}

  /// Makes something whose own metrics are to be here.
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
      // Whoever asks for what cannot be shown may count all the same.
      guard family.kind == Cell.kind, family.series[labels] != nil || family.series.count < Self.maximumSeries else {
        return made
      }
      family.series[labels, default: []].append(made)
      families[name] = family
      return made
    }
  }

  /// A gauge that is read when it is asked for.
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
          // There is one for all that could happen: what never did is not worth a line.
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

  // MARK: What libraries ask for

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

  // They stay for as long as the process.
  public func destroyCounter(_ handler: any CounterHandler) {}
  public func destroyMeter(_ handler: any MeterHandler) {}
  public func destroyRecorder(_ handler: any RecorderHandler) {}
  public func destroyTimer(_ handler: any TimerHandler) {}
}
