import App
import ArgumentParser
import EmbeddedPostgres
import Foundation
import Logging
import Postgres
import ServiceLifecycle
import UnixSignals

struct Dev: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Run everything in one process, with a private PostgreSQL, for development.")

  @Option(help: "The address to listen on. With 0.0.0.0, phones in the same network reach the service.")
  var host = "127.0.0.1"

  @Option(help: "The port to listen on.")
  var port: UInt16 = 8080

  @Option(
    name: .customLong("public-url"),
    help: "The URL for clients. By default MUSTER_PUBLIC_URL, or else the address of this machine.")
  var publicURL: String?

  @Option(help: "The folder for the data, which is kept for the next run.")
  var data = ".muster"

  @Flag(help: "Delete the data first.")
  var reset = false

  func validate() throws {
    guard port != 0 || LocalNetwork.isLoopback(host) else {
      throw ValidationError("--port must not be 0 with --host \(host): phones keep the address.")
    }
  }

  func run() async throws {
    let environment = ProcessInfo.processInfo.environment
    // Before PostgreSQL starts, which would inherit them.
    Containment.forgetSecrets()
    let service = DevelopmentService(
      host: host, port: Int(port), publicURL: publicURL, folder: data, resets: reset, environment: environment,
      logger: makeLogger())
    // Closing the terminal sends SIGHUP. PostgreSQL must not keep running then.
    try await run([service], until: [.sigterm, .sigint, .sighup], logger: service.logger)
  }
}

/// Runs a cluster with the migrations and the demo data, the service and the worker. All of them end together.
private struct DevelopmentService: Service {
  let host: String
  let port: Int
  let publicURL: String?
  let folder: String
  let resets: Bool
  let environment: [String: String]
  let logger: Logger

  func run() async throws {
    // If a stop is requested while the cluster starts, the start completes first, and the cluster then stops
    // gracefully.
    if resets { try await EmbeddedPostgres.erase(folder) }
    let cluster = try await EmbeddedPostgres.start(in: folder) { say($0) }
    do {
      if !Task.isShuttingDownGracefully { try await serve(on: cluster) }
    } catch {
      try await cluster.stop()
      throw error
    }
    try await cluster.stop()
  }

  private func serve(on cluster: EmbeddedPostgres) async throws {
    // As in production, the service and the worker cannot change the schema.
    let role = EmbeddedPostgres.programRole
    let url = cluster.uri(database: "muster", role: role)
    try await ScriptConnection.run(cluster.uri(database: "postgres")) { connection in
      try connection.script(EmbeddedPostgres.creatingProgramRole)
      guard try connection.rows("SELECT 1 FROM pg_database WHERE datname = 'muster'").isEmpty else { return }
      try connection.script("CREATE DATABASE muster")
    }
    try await Resources.migrator(url: cluster.uri(database: "muster"), role: role).up()

    FileLimit.raise()
    var settings = try DevSettings.read(from: cluster)
    var configuration = try await configuration(of: url, fallbacks: settings.variables)
    // They would let anyone who reaches the service sign tokens.
    let replacesKeys = isReachable(configuration) && configuration.hasPublishedKeys && settings.keys == nil
    if replacesKeys {
      settings.keys = DevSettings.Keys()
      configuration = try await self.configuration(of: url, fallbacks: settings.variables)
    }
    // The environment may still give them.
    if isReachable(configuration) { try configuration.refusePublishedKeys() }
    try configuration.refuseMoreConnectionsThanFiles()
    let dependencies = try await Dependencies(configuration, name: "muster dev", logger: logger, hostAge: 0)
    logger.info("time zones", metadata: ["tzdata": "\(dependencies.zones.version)"])
    do {
      if replacesKeys {
        // Their secrets are sealed with the published keys. First, so that it is repeated if the program is killed.
        try await Device.removeWebhooks(in: dependencies.database)
        try settings.save(to: cluster)
        say("From now on, the service has its own keys. Log in again on every device, and re-register webhooks.")
      }
      let clientURL =
        configuration.publicURL ?? PublicURL.of(host, port: port, isSecure: configuration.certificate != nil)
      // With port 0, each run has another URL.
      if clientURL != settings.publicURL || port == 0 {
        try await Stamps.move(in: dependencies.database)
        settings.publicURL = clientURL
        try settings.save(to: cluster)
      }
      try await serve(with: dependencies, at: isShared ? clientURL : nil)
    } catch {
      await dependencies.close()
      throw error
    }
    await dependencies.close()
  }

  private var isShared: Bool { !LocalNetwork.isLoopback(host) }

  /// Whether others can reach the service: in the network, or through a tunnel to a public URL.
  private func isReachable(_ configuration: MusterConfiguration) -> Bool {
    let clients = configuration.publicURL.flatMap { URL(string: $0)?.host() }
    return isShared || clients.map { !LocalNetwork.isLoopback($0) } ?? false
  }

  private func configuration(of database: String, fallbacks: [String: String]) async throws -> MusterConfiguration {
    var overrides = ["DATABASE_URL": database]
    if let publicURL { overrides["MUSTER_PUBLIC_URL"] = publicURL }
    var configuration = try await MusterConfiguration.loadWithWarnings(
      for: .dev, environment: environment, overrides: overrides, fallbacks: fallbacks)
    // There is no load balancer to wait for.
    configuration.drainSeconds = 0
    if isShared, configuration.publicURL == nil {
      let address = PublicURL.isEverywhere(host) ? LocalNetwork.address : host
      if address == nil { say("This machine has no address in a private network: set --public-url for phones.") }
      configuration.publicURL = PublicURL.of(
        address ?? "localhost", port: port, isSecure: configuration.certificate != nil)
    }
    return configuration
  }

  /// - Parameter url: the URL for clients; nil for the address on which the service listens.
  private func serve(with dependencies: Dependencies, at url: String?) async throws {
    let check = Task { await dependencies.checkPictures() }
    defer { check.cancel() }
    let logins = try await DemoSeed().plant(in: dependencies)
    let isSecure = dependencies.certificate != nil
    let service = makeService(dependencies, host: host, port: port) {
      let greeting = DevGreeting(
        url: url ?? PublicURL.of(host, port: $0, isSecure: isSecure), isShared: isShared, logins: logins,
        folder: folder)
      say(greeting.text)
    }
    let worker = NotificationWorker(
      dependencies, sender: Channels(dependencies, printsPayloads: true),
      mailer: dependencies.webhookMailer ?? LogMailer(logger: logger), concurrency: 4)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await service.run() }
      group.addTask { try await worker.run() }
      if let metrics = makeMetricsService(dependencies, port: 9464) { group.addTask { try await metrics.run() } }
      // The first one that ends, regularly or with an error, stops the others.
      do {
        try await group.next()
      } catch {
        group.cancelAll()
        throw error
      }
      if !Task.isShuttingDownGracefully { group.cancelAll() }
      try await group.waitForAll()
    }
  }

  /// Prints plain text to stdout, even if it is not a terminal.
  private func say(_ line: String) {
    print(line)
    // A pipe is buffered, but its reader may wait for the address.
    fflush(nil)
  }
}

/// Settings that `muster dev` keeps with its data from run to run.
private struct DevSettings: Codable {
  struct Keys: Codable {
    var access = SigningKeys.generate()
    var refresh = SigningKeys.generate()
    var address = SigningKeys.generate()
  }

  /// Nil while no other machine could reach the service. Once made, they are used by every run: with other keys, all
  /// phones would have to log in again.
  var keys: Keys?
  /// The URL that `pictureUrl` began with in the last run.
  var publicURL: String?

  static func read(from cluster: EmbeddedPostgres) throws -> DevSettings {
    guard let text = cluster.settings else { return DevSettings() }
    do {
      return try JSONDecoder().decode(DevSettings.self, from: Data(text.utf8))
    } catch {
      throw Failure("the settings in \(cluster.folder) are damaged: start over with `muster dev --reset`")
    }
  }

  func save(to cluster: EmbeddedPostgres) throws {
    try cluster.keep(settings: String(decoding: try JSONEncoder().encode(self), as: UTF8.self))
  }

  /// The keys as environment variables.
  var variables: [String: String] {
    guard let keys else { return [:] }
    return [
      "MUSTER_ACCESS_TOKEN_KEYS": keys.access, "MUSTER_REFRESH_TOKEN_KEYS": keys.refresh,
      "MUSTER_ADDRESS_KEYS": keys.address,
    ]
  }
}

/// The text that `muster dev` prints when it is up.
private struct DevGreeting {
  /// The base URL for clients.
  let url: String
  /// Whether other machines can reach the service.
  let isShared: Bool
  let logins: DemoSeed.Logins
  let folder: String

  var text: String {
    var lines = ["", "Muster is up at \(url)"]
    if isShared { lines += linesForPhones }
    lines += (logins.leftOut + logins.changed).map { "\($0) `muster dev --reset` deletes all data and starts over." }
    if let login = logins.working {
      let body = #"{"login": "\#(login)", "password": "\#(DemoSeed.password)"}"#
      lines += [
        "Demo login: \(login) with the password \(DemoSeed.password)",
        "Try: curl -s \(url)/api/v1/auth/login -H 'Content-Type: application/json' -d '\(body)'",
      ]
    }
    lines.append("All calls, with examples: \(url)/docs")
    lines.append("Ctrl-C stops it. The data stays in \(folder)")
    return lines.joined(separator: "\n")
  }

  private var linesForPhones: [String] {
    var lines = ["The server for your app: \(url)"]
    if url.hasPrefix("http:") {
      lines.append("An iOS app needs NSAllowsLocalNetworking in its Info.plist, because this is not https.")
    }
    lines.append("Anyone in this network can log in as a demo user: the password is published.")
    return lines
  }
}
