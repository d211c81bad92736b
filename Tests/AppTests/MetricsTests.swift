import AsyncHTTPClient
import Foundation
import HTTPServer
import Metrics
import NIOCore
import NIOHTTP1
import Postgres
import Testing
import TestSupport

@testable import App

/// The metrics as Prometheus reads them.
@Suite struct MetricsTests {
  // MARK: Processes

  @Test func `a service reports its requests, its database, the queue and itself`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      try await app.takeMails()
      try await ben.sendFriendRequest(to: ana)
      try await ben.report(ana)
      let started = Timestamp.now()
      let program = try await serve(app, ["MUSTER_METRICS_LISTEN": "127.0.0.1:0"])
      defer { program.signal(SIGKILL) }
      let (api, metrics) = try await addresses(of: program)
      let service = TestApp(url: api, databaseURL: app.databaseURL, dependencies: app.dependencies)
      for _ in 1...3 { #expect(try await service.send("GET", "users/me", token: ana.accessToken).status == 200) }
      #expect(try await service.send("HEAD", "users/me", token: ana.accessToken).status == 200)
      #expect(try await service.send("GET", "users/me").status == 401)
      let unknown = UUID().uuidString.lowercased()
      #expect(try await service.send("GET", "events/\(unknown)", token: ana.accessToken).status == 404)
      for path in ["/nope/\(unknown)", "/nope"] { #expect(try await service.send("GET", path).status == 404) }
      #expect(try await service.send("PATCH", "/health/live").status == 405)

      let scrape = try await Scrape(metrics)
      let me = ["method": "GET", "route": "/api/v1/users/me"]
      #expect(scrape.value("http_requests_total", me.merging(["status": "2xx"]) { $1 }) == 3)
      #expect(scrape.value("http_requests_total", me.merging(["status": "4xx"]) { $1 }) == 1)
      #expect(
        scrape.value("http_requests_total", ["method": "HEAD", "route": "/api/v1/users/me", "status": "2xx"]) == 1)
      #expect(
        scrape.value("http_requests_total", ["method": "GET", "route": "/api/v1/events/{id}", "status": "4xx"]) == 1)
      #expect(scrape.value("http_requests_total", ["method": "any", "route": "none", "status": "4xx"]) == 3)
      #expect(scrape.types["http_requests_total"] == "counter")
      #expect(scrape.value("http_request_duration_seconds_count", me) == 4)
      try scrape.expectHistogram("http_request_duration_seconds", me)
      #expect(!scrape.text.contains(unknown))

      #expect(scrape.value("postgres_statement_seconds_count") ?? 0 >= 3)
      try scrape.expectHistogram("postgres_statement_seconds", [:])
      #expect(scrape.value("postgres_connections_opened_total") ?? 0 >= 1)
      #expect(scrape.value("postgres_pool_waiting") == 0)

      #expect(scrape.value("muster_queue_up") == 1)
      #expect(scrape.value("muster_queue_rows", ["type": "friend-request", "state": "due"]) == 1)
      #expect((0..<600).contains(scrape.value("muster_queue_oldest_seconds") ?? -1))
      #expect(scrape.value("muster_reports_open") == 1)
      #expect(scrape.value("muster_streams") == 0)
      #expect(scrape.value("muster_ended_sessions") == 0)
      #expect((0..<60).contains(scrape.value("muster_ended_sessions_age_seconds") ?? -1))
      #expect(scrape.value("muster_build_info", ["version": Release.version]) == 1)
      #expect(scrape.value("muster_tzdata_info", ["version": app.dependencies.zones.version]) == 1)
      #expect(scrape.value("muster_connections") ?? 0 >= 1)

      let began = try #require(scrape.value("process_start_time_seconds"))
      #expect(abs(began - Double(started.microseconds) / 1e6) < 60)
      #expect(scrape.value("process_cpu_seconds_total") ?? 0 > 0)
      #if os(Linux)
        #expect((1e6..<1e10).contains(scrape.value("process_resident_memory_bytes") ?? 0))
      #endif

      // The API does not serve metrics, and this address serves nothing else.
      #expect(try await service.send("GET", "/metrics").status == 404)
      let other = try await HTTPClient.shared.execute(
        HTTPClientRequest(url: metrics.replacing("/metrics", with: "/health/live")), timeout: .seconds(10))
      #expect(other.status == .notFound)
      // As of any path, a slash at its end has no meaning.
      let same = try await HTTPClient.shared.execute(HTTPClientRequest(url: metrics + "/"), timeout: .seconds(10))
      #expect(same.status == .ok)
      program.signal(SIGTERM)
      #expect(try await program.exitStatus() == 0)
      try await app.takeNotifications()
    }
  }

  @Test func `a worker reports all states of the queue`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(2)
      try await app.enqueue(rounds: 0..<1, to: 2)
      try await app.database.execute(
        """
        UPDATE deliveries
        SET due_at = now() + interval '1 hour', attempts = 3, created_at = now() - interval '30 minutes'
        """)
      try await app.enqueue(subjects: 3, to: 1)
      try await app.database.execute(
        "UPDATE deliveries SET type = 'event-invited', attempts = 9, died_at = now() WHERE attempts = 0")
      let environment = Muster.environment(app.databaseURL).merging(["MUSTER_METRICS_LISTEN": "127.0.0.1:0"]) { $1 }
      let program = try await Program(Program.path("muster"), ["worker"], environment: environment)
      defer { program.signal(SIGKILL) }
      let scrape = try await Scrape(try await metricsAddress(of: program))
      #expect(scrape.value("muster_queue_rows", ["type": "test", "state": "waiting"]) == 2)
      #expect(scrape.value("muster_queue_rows", ["type": "event-invited", "state": "dead"]) == 3)
      // Nothing is due, and two rows are not delivered: only their age shows an outage of a provider.
      #expect(scrape.value("muster_queue_oldest_seconds") == 0)
      #expect((1800..<2400).contains(scrape.value("muster_queue_undelivered_seconds", ["channel": "log"]) ?? 0))
      program.signal(SIGTERM)
      #expect(try await program.exitStatus() == 0)
      try await app.forgetDeliveries()
    }
  }

  @Test func `the queue is counted at most every 15 s, and estimated when it is long`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(1)
      try await app.enqueue(subjects: 12_000, to: 1)
      try await app.database.execute("ANALYZE deliveries")
      let recent = RecentQueueStats()
      let stats = try await recent.read(in: app.service)
      #expect(stats.isEstimate)
      #expect((8000...16_000).contains(stats.total.due), "\(stats.total.due)")
      #expect(stats.oldestDueSeconds != nil)
      try await app.forgetDeliveries()
      #expect(try await recent.read(in: app.service).total.due == stats.total.due)
      let exact = try await QueueStats.read(in: app.service)
      #expect(!exact.isEstimate && exact.total.due == 0 && exact.oldestDueSeconds == nil)
    }
  }

  @Test func `a channel that fails for long does not hide that another has begun to fail`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(2)
      try await app.database.execute(
        "UPDATE devices SET platform = 'ios', environment = 'production' WHERE user_id = md5('r2')::uuid")
      try await app.enqueue(subjects: QueueStats.countedRows + 100, to: 1)
      try await app.database.execute("UPDATE deliveries SET created_at = now() - interval '10 hours', attempts = 3")
      try await app.enqueue(subjects: 1, to: 2)
      try await app.database.execute(
        "UPDATE deliveries SET created_at = now() - interval '1 hour' WHERE attempts = 0")
      let ages = try await QueueStats.read(in: app.service).oldestUndeliveredSeconds
      #expect(Set(ages.keys) == ["log", "ios"])
      #expect((36_000..<37_000).contains(ages["log"] ?? 0), "\(ages)")
      #expect((3600..<4600).contains(ages["ios"] ?? 0), "\(ages)")
      try await app.forgetDeliveries()
    }
  }

  @Test func `a service runs without metrics if the default port is taken, but ends if a chosen one is`() async throws {
    try await TestApp.run { app in
      let first = try await serve(app, ["MUSTER_METRICS_LISTEN": ""])
      defer { first.signal(SIGKILL) }
      try await first.waitForOutput("listening")
      // Another process may have the port already.
      try await eventually {
        first.standardError.contains("/metrics") || first.standardError.contains("MUSTER_METRICS_LISTEN")
      }
      let second = try await serve(app, ["MUSTER_METRICS_LISTEN": ""])
      defer { second.signal(SIGKILL) }
      try await second.waitForOutput("listening")
      try await second.waitForOutput("this process serves no metrics")
      let address = try #require(second.standardError.firstMatch(of: /"address":"(http:\/\/127\.0\.0\.1:\d+)"/)?.1)
      let service = TestApp(url: String(address), databaseURL: app.databaseURL, dependencies: app.dependencies)
      #expect(try await service.send("GET", "/health/live").status == 200)

      let third = try await serve(app, ["MUSTER_METRICS_LISTEN": "127.0.0.1:9464"])
      defer { third.signal(SIGKILL) }
      #expect(try await third.exitStatus() != 0)
      #expect(third.standardError.contains("MUSTER_METRICS_LISTEN: port 9464 is in use"), "\(third.standardError)")

      let quiet = try await serve(app, ["MUSTER_METRICS_LISTEN": "off"])
      defer { quiet.signal(SIGKILL) }
      try await quiet.waitForOutput("listening")
      for program in [first, second, quiet] { program.signal(SIGTERM) }
      for program in [first, second, quiet] { #expect(try await program.exitStatus() == 0) }
      #expect(!quiet.standardError.contains("metrics"))
    }
  }

  private func serve(_ app: TestApp, _ more: [String: String]) async throws -> Program {
    try await Program(
      Program.path("muster"), ["serve", "--port", "0"],
      environment: Muster.environment(app.databaseURL).merging(more) { $1 })
  }

  private func metricsAddress(of program: Program) async throws -> String {
    try await program.waitForOutput("/metrics")
    return String(try #require(program.standardError.firstMatch(of: /http:\/\/127\.0\.0\.1:\d+\/metrics/)?.0))
  }

  private func addresses(of program: Program) async throws -> (api: String, metrics: String) {
    try await program.waitForOutput("listening")
    let metrics = try await metricsAddress(of: program)
    let api = try #require(program.standardError.firstMatch(of: /"address":"(http:\/\/127\.0\.0\.1:\d+)"/)?.1)
    return (String(api), metrics)
  }

  // MARK: Counting

  @Test func `concurrent counts are not lost`() async throws {
    let metrics = MetricsRegistry()
    let get = RequestMetrics("GET", "/a/{id}", in: metrics)
    let delete = RequestMetrics("DELETE", "/a/{id}", in: metrics)
    let other = RequestMetrics("any", "none", in: metrics)
    _ = RequestMetrics("POST", "/b", in: metrics)
    await withTaskGroup(of: Void.self) { group in
      for task in 0..<16 {
        group.addTask {
          for number in 0..<2000 {
            get.count(number.isMultiple(of: 10) ? 404 : 200, after: .milliseconds(task))
            delete.count(204, after: .seconds(60))
            other.count(404, after: .zero)
            other.count(405, after: .zero)
          }
        }
      }
    }
    var text = MetricsText()
    metrics.write(to: &text)
    let scrape = try Scrape(parsing: text.text)
    let got = ["method": "GET", "route": "/a/{id}"]
    #expect(scrape.value("http_requests_total", got.merging(["status": "2xx"]) { $1 }) == 28_800)
    #expect(scrape.value("http_requests_total", got.merging(["status": "4xx"]) { $1 }) == 3200)
    #expect(scrape.value("http_requests_total", ["method": "any", "route": "none", "status": "4xx"]) == 64_000)
    #expect(scrape.value("http_request_duration_seconds_count", got) == 32_000)
    // 0 to 15 milliseconds, 2000 each.
    #expect(abs((scrape.value("http_request_duration_seconds_sum", got) ?? 0) - 240) < 0.001)
    #expect(scrape.value("http_request_duration_seconds_bucket", got.merging(["le": "0.005"]) { $1 }) == 12_000)
    let slow = ["method": "DELETE", "route": "/a/{id}"]
    #expect(scrape.value("http_request_duration_seconds_bucket", slow.merging(["le": "10.0"]) { $1 }) == 0)
    for labels in [got, slow] { try scrape.expectHistogram("http_request_duration_seconds", labels) }
    // A counter that is still zero has no line.
    #expect(!scrape.text.contains("/b"))
  }

  @Test func `metrics of libraries are included, whatever their names`() async throws {
    let metrics = MetricsRegistry()
    let strange = "a \"quoted\"\nline \\ of {label}=\"x\","
    try metrics.measuring {
      for number in 1...2 {
        // Two with the same name, like those of two databases.
        let gauge = Gauge(label: "pool.size-of/it")
        gauge.record(number)
        Counter(label: "calls", dimensions: [("of", strange)]).increment(by: 2)
        Metrics.Timer(label: "took").recordMilliseconds(20)
      }
      let meter = Meter(label: "level")
      meter.set(1.5)
      meter.decrement(by: 2.0)
      // Another kind under a name that is taken: it counts, but it is not shown.
      Gauge(label: "calls").record(7)
      for number in 0..<2000 { Counter(label: "many", dimensions: [("number", "\(number)")]).increment() }
    }
    var text = MetricsText()
    metrics.write(to: &text)
    let scrape = try Scrape(parsing: text.text)
    #expect(scrape.value("pool_size_of_it") == 3)
    #expect(scrape.value("calls", ["of": strange]) == 4)
    #expect(scrape.types["calls"] == "counter")
    #expect(scrape.value("took_count") == 2)
    #expect(scrape.value("took_sum") == 0.04)
    #expect(scrape.value("level") == -0.5)
    #expect(scrape.samples.count { $0.name == "many" } == 1000)
  }

  @Test func `deliveries are counted by channel and by outcome`() async throws {
    struct Refuses: PushSender {
      let error: (any Error)?

      func send(_ push: Push, to device: Device) async throws {
        if let error { throw error }
      }
    }
    let metrics = MetricsRegistry()
    let push = Push(
      id: "1", type: "friend-request", subject: "2", recipient: "3", payload: "{}", createdAt: Timestamp.now())
    let outcomes: [(name: String, error: (any Error)?)] = [
      ("delivered", nil), ("postponed", DeliveryFailure(description: "busy", remedy: .later(seconds: 5))),
      ("postponed", CancellationError()), ("refused", DeliveryFailure(description: "no", remedy: .none)),
      ("gone", DeliveryFailure(description: "gone", remedy: .forgettingTheDevice)),
    ]
    for platform in [Device.Platform.ios, .webhook] {
      let device = Device(
        id: .new(), platform: platform, token: "token", environment: nil, topic: nil, registeredAt: .now(),
        sealedSecrets: [])
      for (name, error) in outcomes {
        let sender = MeasuredSender(Refuses(error: error), in: metrics)
        if name == "delivered" {
          try await sender.send(push, to: device)
        } else {
          await #expect(throws: (any Error).self) { try await sender.send(push, to: device) }
        }
      }
    }
    var text = MetricsText()
    metrics.write(to: &text)
    let scrape = try Scrape(parsing: text.text)
    for channel in ["ios", "webhook"] {
      for (outcome, count) in ["delivered": 1.0, "postponed": 2, "refused": 1, "gone": 1] {
        #expect(scrape.value("muster_deliveries_total", ["channel": channel, "outcome": outcome]) == count)
      }
      #expect(scrape.value("muster_delivery_duration_seconds_count", ["channel": channel]) == 5)
    }
    #expect(!scrape.text.contains("android"))
  }

  @Test func `an address to listen on has a host and a port`() {
    #expect(MetricsListening("off") == .off)
    #expect(MetricsListening("0.0.0.0:9464") == .at(host: "0.0.0.0", port: 9464))
    #expect(MetricsListening("localhost:0") == .at(host: "localhost", port: 0))
    #expect(MetricsListening("[::1]:9464") == .at(host: "::1", port: 9464))
    for text in ["", "on", "9464", ":9464", "localhost", "localhost:", "localhost:x", "::1:9464", "[]:1", "a:65536"] {
      #expect(MetricsListening(text) == nil, "\(text)")
    }
  }
}

/// Metrics as a reader of Prometheus text format understands them, without knowledge of the writer.
private struct Scrape {
  struct Sample {
    let name: String
    let labels: [String: String]
    let value: Double
  }

  let text: String
  private(set) var types: [String: String] = [:]
  private(set) var samples: [Sample] = []

  init(_ url: String) async throws {
    let response = try await HTTPClient.shared.execute(HTTPClientRequest(url: url), timeout: .seconds(20))
    #expect(response.status == .ok)
    #expect(response.headers.first(name: "Content-Type")?.hasPrefix("text/plain; version=0.0.4") == true)
    self = try Scrape(parsing: String(buffer: try await response.body.collect(upTo: 16 << 20)))
  }

  init(parsing text: String) throws {
    self.text = text
    #expect(text.hasSuffix("\n"))
    for line in text.split(separator: "\n") {
      if line.hasPrefix("# ") {
        let words = line.split(separator: " ", maxSplits: 3).map(String.init)
        try #require(words.count == 4 && ["HELP", "TYPE"].contains(words[1]), "\(line)")
        if words[1] == "TYPE" {
          #expect(types[words[2]] == nil, "\(line)")
          #expect(["counter", "gauge", "histogram"].contains(words[3]), "\(line)")
          types[words[2]] = words[3]
        }
      } else {
        samples.append(try Self.sample(line))
      }
    }
    for sample in samples {
      let family = sample.name.replacing(/_(bucket|sum|count)$/, with: "")
      #expect(types[sample.name] != nil || types[family] == "histogram", "\(sample.name)")
    }
    let places = samples.map { "\($0.name) \($0.labels.sorted { $0.key < $1.key })" }
    #expect(Set(places).count == places.count, "a series occurs twice")
  }

  private static func sample(_ line: Substring) throws -> Sample {
    var rest = line
    let name = rest.prefix { $0.isASCII && ($0.isLetter || $0.isNumber) || $0 == "_" || $0 == ":" }
    rest = rest.dropFirst(name.count)
    try #require(!name.isEmpty, "\(line)")
    var labels: [String: String] = [:]
    if rest.first == "{" {
      rest = rest.dropFirst()
      while rest.first != "}" {
        let label = rest.prefix { $0.isASCII && ($0.isLetter || $0.isNumber) || $0 == "_" }
        rest = rest.dropFirst(label.count)
        try #require(!label.isEmpty && rest.hasPrefix("=\""), "\(line)")
        rest = rest.dropFirst(2)
        var value = ""
        while let character = rest.popFirst(), character != "\"" {
          guard character == "\\" else {
            value.append(character)
            continue
          }
          let next = rest.popFirst()
          let escaped = try #require(next, "\(line)")
          value.append(escaped == "n" ? "\n" : escaped)
        }
        #expect(labels.updateValue(value, forKey: String(label)) == nil, "\(line)")
        if rest.first == "," { rest = rest.dropFirst() }
      }
      rest = rest.dropFirst()
    }
    try #require(rest.first == " ", "\(line)")
    let number: Double = try #require(Double(rest.dropFirst()), "\(line)")
    return Sample(name: String(name), labels: labels, value: number)
  }

  func value(_ name: String, _ labels: [String: String] = [:]) -> Double? {
    samples.first { $0.name == name && $0.labels == labels }?.value
  }

  /// Checks that the buckets rise up to the total count.
  func expectHistogram(_ name: String, _ labels: [String: String]) throws {
    #expect(types[name] == "histogram")
    let buckets = samples.filter { sample in
      var others = sample.labels
      return others.removeValue(forKey: "le") != nil && sample.name == name + "_bucket" && others == labels
    }
    let bounds = try buckets.map { bucket -> Double in
      let text: String = try #require(bucket.labels["le"])
      return text == "+Inf" ? .infinity : try #require(Double(text))
    }
    #expect(bounds.count > 5)
    #expect(bounds == bounds.sorted())
    #expect(bounds.last == .infinity)
    #expect(buckets.map(\.value) == buckets.map(\.value).sorted())
    #expect(buckets.last?.value == value(name + "_count", labels))
    #expect(value(name + "_sum", labels) != nil)
  }
}
