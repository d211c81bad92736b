import Foundation
import HTTPServer
import Logging
import Postgres
import ServiceLifecycle

/// Serves `/metrics` in Prometheus text format, on an address of its own.
///
/// - Parameter port: the port if no address is configured.
/// - Returns: nil if metrics are off.
public func makeMetricsService(_ dependencies: Dependencies, port: Int) -> (any Service)? {
  switch dependencies.metricsListening {
  case .off: return nil
  case .byDefault: return MetricsService(dependencies, host: "127.0.0.1", port: port, isChosen: false)
  case .at(let host, let port): return MetricsService(dependencies, host: host, port: port, isChosen: true)
  }
}

private struct MetricsService: Service {
  private let metrics: MetricsRegistry
  private let database: Database
  private let zones: ZoneDatabase
  private let logger: Logger
  private let host: String
  private let port: Int
  private let isChosen: Bool
  private let queue = RecentQueueStats()

  init(_ dependencies: Dependencies, host: String, port: Int, isChosen: Bool) {
    metrics = dependencies.metrics
    database = dependencies.database
    zones = dependencies.zones
    logger = dependencies.logger
    self.host = host
    self.port = port
    self.isChosen = isChosen
  }

  func run() async throws {
    // A gate of its own: clients of the API cannot keep Prometheus out.
    let gate = ConnectionGate(limit: 64)
    let paths = PathTree(["/metrics"])
    let server = Server(host: host, port: port, gate: gate, logger: logger) { [logger, host] port in
      let name = host.contains(":") ? "[\(host)]" : host
      logger.info("metrics", metadata: ["address": "http://\(name):\(port)/metrics"])
    } responder: { request, _ in
      guard request.method == .get, paths.find(request.uri.path) != nil else { return Response(status: .notFound) }
      return await text()
    }
    do {
      try await server.run()
    } catch let error as ListenError {
      guard !isChosen else { throw ListenError(description: "MUSTER_METRICS_LISTEN: \(error)") }
      logger.warning("this process serves no metrics: check MUSTER_METRICS_LISTEN", metadata: ["reason": "\(error)"])
      // If this service returned, the other services would also stop. The wait throws only when cancelled, which also
      // ends it.
      try? await gracefulShutdown()
    }
  }

  private func text() async -> Response {
    var text = MetricsText()
    metrics.write(to: &text)
    writeProcess(to: &text)
    await writeQueue(to: &text)
    await writeReports(to: &text)
    await writeOptOuts(to: &text)
    return Response(
      status: .ok, headers: [.contentType: "text/plain; version=0.0.4; charset=utf-8", .cacheControl: "no-store"],
      body: ResponseBody(ByteBuffer(string: text.text)))
  }

  private func writeProcess(to text: inout MetricsText) {
    text.family("muster_build_info", .gauge, "Always 1; the version is a label.")
    text.sample("muster_build_info", MetricsText.labels([("version", Release.version)]), 1)
    text.family("muster_tzdata_info", .gauge, "Always 1; the version of the time zone database is a label.")
    text.sample("muster_tzdata_info", MetricsText.labels([("version", zones.version)]), 1)
    text.family("process_start_time_seconds", .gauge, "When the process started, in seconds since 1970.")
    text.sample("process_start_time_seconds", "", Double(metrics.startedAt.microseconds) / 1e6)
    text.family("process_cpu_seconds_total", .counter, "Processor time used.")
    text.sample("process_cpu_seconds_total", "", Double(clock()) / Double(CLOCKS_PER_SEC))
    // Linux only. The second number counts the pages in memory.
    let pages = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?.split(separator: " ")
    if let pages, pages.count > 1, let resident = Double(pages[1]) {
      text.family("process_resident_memory_bytes", .gauge, "Memory in use.")
      text.sample("process_resident_memory_bytes", "", resident * Double(sysconf(Int32(_SC_PAGESIZE))))
    }
  }

  /// The queues, which all workers share: every process reports the same numbers.
  private func writeQueue(to text: inout MetricsText) async {
    text.family("muster_queue_up", .gauge, "Whether the queues could be counted.")
    let stats: QueueStats
    do {
      stats = try await queue.read(in: database)
    } catch {
      logger.warning("the queues cannot be counted", metadata: ["error": "\(error)"])
      text.sample("muster_queue_up", "", 0)
      return
    }
    text.sample("muster_queue_up", "", 1)
    text.family(
      "muster_queue_rows", .gauge,
      """
      Rows in the queues: due, waiting for another attempt or behind such a row, in flight, or dead. Read at \
      most every 15 s, and estimated from a sample for a table of more than \(QueueStats.countedRows) rows.
      """)
    for (type, counts) in stats.types.sorted(by: { $0.key < $1.key }) {
      for (state, count) in [
        ("due", counts.due), ("waiting", counts.waiting), ("in-flight", counts.inFlight), ("dead", counts.dead),
      ] {
        text.sample("muster_queue_rows", MetricsText.labels([("type", type), ("state", state)]), Double(count))
      }
    }
    text.family(
      "muster_queue_oldest_seconds", .gauge,
      "How long ago the oldest due row became due. Read at most every 15 s.")
    text.sample("muster_queue_oldest_seconds", "", stats.oldestDueSeconds ?? 0)
    text.family(
      "muster_queue_undelivered_seconds", .gauge,
      "The age of the oldest row that is not delivered, by channel, also if it waits for a later attempt.")
    for (channel, age) in stats.oldestUndeliveredSeconds.sorted(by: { $0.key < $1.key }) {
      text.sample("muster_queue_undelivered_seconds", MetricsText.labels([("channel", channel)]), age)
    }
  }

  /// Every process reports the same number.
  private func writeReports(to text: inout MetricsText) async {
    do {
      let count = try await Report.countOpen(in: database)
      text.family("muster_reports_open", .gauge, "Open reports.")
      text.sample("muster_reports_open", "", Double(count))
    } catch {
      logger.warning("the reports cannot be counted", metadata: ["error": "\(error)"])
    }
  }

  /// Every process reports the same number.
  private func writeOptOuts(to text: inout MetricsText) async {
    do {
      let count = try await MailOptOuts.count(in: database)
      text.family("muster_mail_optouts", .gauge, "E-mail addresses that have opted out of mails from strangers.")
      text.sample("muster_mail_optouts", "", Double(count))
    } catch {
      logger.warning("the opt-outs cannot be counted", metadata: ["error": "\(error)"])
    }
  }
}

/// Where metrics are served.
public enum MetricsListening: Sendable, Equatable {
  case off
  /// On this machine, if the port is free.
  case byDefault
  case at(host: String, port: Int)

  /// `host:port`, `[::1]:9464` or `off`.
  init?(_ text: String) {
    if text == "off" {
      self = .off
      return
    }
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else { return nil }
    var host = text[..<colon]
    if host.hasPrefix("["), host.hasSuffix("]") {
      host = host.dropFirst().dropLast()
    } else if host.contains(":") {
      return nil
    }
    guard !host.isEmpty, host.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else { return nil }
    self = .at(host: String(host), port: Int(port))
  }
}

/// The queues' counts, read at most every 15 s, however often they are requested.
actor RecentQueueStats {
  private static let lifetime = Duration.seconds(15)

  private typealias Reading = (stats: QueueStats, start: ContinuousClock.Instant)

  private let flight = SingleFlight<Reading>()
  private var recent: Reading?

  func read(in database: Database) async throws -> QueueStats {
    if let recent, .now < recent.start + Self.lifetime { return recent.stats }
    let reading = try await flight.join {
      let start = ContinuousClock.now
      return (try await QueueStats.read(in: database), start)
    }.value
    recent = reading
    return reading.stats
  }
}
