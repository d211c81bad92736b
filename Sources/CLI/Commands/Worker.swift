import App
import ArgumentParser
import Logging
import ServiceLifecycle

struct Worker: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Deliver notifications and mails, send reminders, archive past events, delete expired data.")

  @Option(help: "The number of sends in flight for each channel.")
  var concurrency = 64

  @Flag(help: "Work until nothing is due, then stop.")
  var once = false

  func validate() throws {
    guard (1...1000).contains(concurrency) else { throw ValidationError("--concurrency must be from 1 to 1000.") }
  }

  func run() async throws {
    let logger = makeLogger()
    FileLimit.raise()
    let configuration = try await MusterConfiguration.loadWithWarnings(for: .worker)
    try await LateCheck(logger: logger) { try await SchemaCheck.run(of: configuration.databaseURL, logger: logger) }
      .wait()
    let dependencies = try await Dependencies(configuration, name: "muster worker", logger: logger)
    let mailer = dependencies.webhookMailer
    if mailer == nil { logger.warning("MUSTER_MAIL_WEBHOOK is not set: mails stay in the queue") }
    let channels = Channels(dependencies)
    for gap in channels.gaps { logger.warning("\(gap)") }
    let worker = NotificationWorker(
      dependencies, sender: channels, mailer: mailer ?? NoMailer(), concurrency: concurrency)
    if once {
      try await run([Once(worker: worker)], zones: dependencies.zones, logger: logger)
    } else {
      logger.info("working")
      let metrics = makeMetricsService(dependencies, port: 9465).map { [$0] } ?? []
      try await run(metrics + [dependencies.schemaWatch, worker], zones: dependencies.zones, logger: logger)
    }
    await dependencies.close()
    endProcess()
  }
}

/// Runs the worker once, as a service, so that it also stops gracefully.
private struct Once: Service {
  let worker: NotificationWorker

  func run() async throws {
    try await worker.runOnce()
  }
}
