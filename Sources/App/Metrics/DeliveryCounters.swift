/// The outcomes of delivery attempts on one channel.
private struct DeliveryCounters: Sendable {
  private enum Outcome: String, CaseIterable {
    case delivered, postponed, refused, gone
  }

  private let outcomes: [Outcome: CounterCell]
  private let duration: HistogramCell

  init(_ channel: String, in metrics: MetricsRegistry) {
    outcomes = Dictionary(
      uniqueKeysWithValues: Outcome.allCases.map { outcome in
        let labels = [("channel", channel), ("outcome", outcome.rawValue)]
        return (outcome, metrics.cell("muster_deliveries_total", labels, of: CounterCell.self))
      })
    duration = metrics.cell("muster_delivery_duration_seconds", [("channel", channel)], of: HistogramCell.self)
  }

  func attempt(_ body: () async throws -> Void) async throws {
    let start = ContinuousClock.now
    do {
      try await body()
      count(.delivered, since: start)
    } catch let failure as DeliveryFailure {
      switch failure.remedy {
      case .later: count(.postponed, since: start)
      case .none: count(.refused, since: start)
      case .forgettingTheDevice: count(.gone, since: start)
      }
      throw failure
    } catch {
      count(.postponed, since: start)
      throw error
    }
  }

  private func count(_ outcome: Outcome, since start: ContinuousClock.Instant) {
    outcomes[outcome]?.increment(by: 1)
    duration.record(ContinuousClock.now - start)
  }
}

/// Counts the deliveries of another sender, by platform.
struct MeasuredSender: PushSender {
  private let sender: any PushSender
  private let channels: [Device.Platform: DeliveryCounters]

  init(_ sender: any PushSender, in metrics: MetricsRegistry) {
    self.sender = sender
    channels = Dictionary(
      uniqueKeysWithValues: Device.Platform.allCases.map { ($0, DeliveryCounters($0.rawValue, in: metrics)) })
  }

  func send(_ push: Push, to device: Device) async throws {
    guard let deliveries = channels[device.platform] else { return try await sender.send(push, to: device) }
    try await deliveries.attempt { try await sender.send(push, to: device) }
  }
}

/// Counts the mails that another sender sends.
struct MeasuredMailer: MailSender {
  private let mailer: any MailSender
  private let deliveries: DeliveryCounters

  init(_ mailer: any MailSender, in metrics: MetricsRegistry) {
    self.mailer = mailer
    deliveries = DeliveryCounters("mail", in: metrics)
  }

  func send(_ mail: OutgoingMail) async throws {
    try await deliveries.attempt { try await mailer.send(mail) }
  }
}
