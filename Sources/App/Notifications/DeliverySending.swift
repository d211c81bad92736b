import AsyncHTTPClient
import DequeModule
import Foundation
import Logging
import Postgres

/// Sending what is claimed, and what becomes of it.
extension Delivery {
  // MARK: Sending

  func beginSends(_ now: Instant, _ group: inout TaskGroup<Happening>) {
    if isStopping {
      jobs += parked.values.joined()
      parked = [:]
    }
    while isStopping || sending < settings.concurrency {
      if let job = jobs.popFirst() {
        begin(job, now, &group)
      } else if let number = ready.popFirst() {
        if let chain = chains[number] { advance(chain) }
      } else {
        return
      }
    }
  }

  func begin(_ job: Job, _ now: Instant, _ group: inout TaskGroup<Happening>) {
    guard let chain = chains[job.chain], !isStopping, !chain.isLost, now < chain.isHeldUntil,
      job.device.map({ !gone.contains($0) }) ?? true
    else {
      note(job, .notTried)
      return unpark(job.device)
    }
    if let device = job.device {
      let underWay = sendingTo[device, default: 0]
      guard underWay < Self.concurrencyOfDevice else {
        parked[device, default: []].append(job)
        return
      }
      sendingTo[device] = underWay + 1
    }
    sending += 1
    let deliver = deliver
    group.addTask {
      do {
        try await deliver(job.parcel)
        return .sent(job, .delivered)
      } catch {
        // Of what is cut short nobody knows whether it arrived: it is sent again.
        if Task.isCancelled { return .sent(job, .notTried) }
        guard let failure = error as? DeliveryFailure else {
          // Others' errors name hosts and addresses.
          let name = (error as? HTTPClientError)?.shortDescription ?? "\(type(of: error))"
          return .sent(job, .failed(name, .later(seconds: nil)))
        }
        return .sent(job, .failed(failure.description, failure.remedy))
      }
    }
  }

  func end(_ job: Job, _ outcome: Outcome) {
    sending -= 1
    if let device = job.device {
      let underWay = sendingTo[device, default: 1] - 1
      sendingTo[device] = underWay == 0 ? nil : underWay
      if case .failed(_, .later) = outcome {
        // What waits for it would fail the same way, one after the other, and keep what is for others waiting.
        for waiting in parked.removeValue(forKey: device) ?? [] { note(waiting, outcome) }
      }
      unpark(device)
    }
    note(job, outcome)
  }

  /// Lets the next one try that waits for a device. Whoever does not use its turn hands it on.
  private func unpark(_ device: Device.ID?) {
    guard let device, let next = parked[device]?.popFirst() else { return }
    jobs.prepend(next)
    if parked[device]?.isEmpty == true { parked[device] = nil }
  }

  private func note(_ job: Job, _ outcome: Outcome) {
    guard let chain = chains[job.chain], var step = chain.step else { return }
    step.outcomes[job.place] = outcome
    step.open -= 1
    chain.step = step.open == 0 ? nil : step
    guard step.open == 0 else { return }
    conclude(step, of: chain)
    ready.append(chain.number)
  }

  /// Makes a chain's next step. What goes to nobody is done at once.
  private func advance(_ chain: Chain) {
    while chain.step == nil {
      if isStopping || chain.isLost {
        receipts.release(chain.holds(chain.rows))
        chain.rows = []
      }
      guard !chain.rows.isEmpty else {
        chains[chain.number] = nil
        return
      }
      // Until they are known, it waits.
      guard let targets = chain.targets else { return }
      begin(chain, targets)
    }
  }

  func begin(_ chain: Chain, _ targets: NotificationQueue.Targets) {
    let (rows, payload) = Self.together(chain.rows, settings.kind)
    guard let newest = rows.last else { return }
    chain.rows = chain.rows.dropFirst(rows.count)
    var parcels: [(device: Device?, parcel: Parcel)] = []
    var spooled: [Device.ID] = []
    if settings.kind == .mails {
      parcels = [(nil, .row(newest))]
    } else if !targets.muted.contains(newest.type), !Self.isPast(newest) {
      let push = Push(newest, payload ?? newest.payload)
      for (device, isBehind) in targets.devices {
        if isBehind || chain.apart.contains(device.id) || gone.contains(device.id) {
          spooled.append(device.id)
        } else {
          parcels.append((device, .push(push, device)))
        }
      }
      if targets.devices.isEmpty, newest.device == nil, settings.tellsOfUnheard { parcels = [(nil, .unheard(push))] }
    }
    let step = Step(
      rows: rows, newest: newest, payload: payload, devices: parcels.map(\.device), spooled: spooled,
      outcomes: parcels.map { _ in .notTried }, open: parcels.count)
    guard !parcels.isEmpty else { return finish(step, of: chain) }
    chain.step = step
    for (place, parcel) in parcels.enumerated() {
      jobs.append(Job(chain: chain.number, place: place, device: parcel.device?.id, parcel: parcel.parcel))
    }
  }

  /// The rows that are sent as one: the first, or as many edits of an event as wait one after the other. What was tried
  /// already is sent again as it was.
  ///
  /// - Returns: with what is told of several.
  static func together(
    _ rows: ArraySlice<Item>, _ kind: NotificationQueue.Kind
  ) -> (rows: [Item], payload: JSONDocument?) {
    let edits = Array(rows.prefix { $0.type == Notice.Kind.eventUpdated.rawValue && $0.attempts == 0 })
    guard kind == .pushes, edits.count > 1, let merged = Notice.merged(edits.map(\.payload)) else {
      return (Array(rows.prefix(1)), nil)
    }
    return (edits, merged)
  }

  // MARK: What has become of it

  private func conclude(_ step: Step, of chain: Chain) {
    let isUntouched = step.outcomes.allSatisfy { if case .notTried = $0 { true } else { false } }
    if isUntouched {
      // Given back, and what is behind it.
      receipts.release(chain.holds(step.rows) + chain.holds(chain.rows))
      chain.rows = []
    } else if settings.kind == .pushes, step.newest.device == nil {
      divide(step, of: chain)
    } else {
      judge(step, of: chain)
    }
  }

  private func finish(_ step: Step, of chain: Chain) {
    let failed = step.outcomes.contains { if case .delivered = $0 { false } else { true } }
    receipts.finish(chain.holds(step.rows), isReplaced: failed || !step.spooled.isEmpty)
    for device in step.spooled { receipts.spool(step.newest.id, for: device, step.payload) }
  }

  /// Ends a row that was for all devices: those that were not told have rows of their own from here on.
  private func divide(_ step: Step, of chain: Chain) {
    finish(step, of: chain)
    let newest = step.newest
    for (device, outcome) in zip(step.devices, step.outcomes) {
      guard let device else { continue }
      switch outcome {
      case .delivered: continue
      case .notTried: receipts.spool(newest.id, for: device.id, step.payload)
      case .failed(let error, let remedy):
        log(error, newest)
        switch remedy {
        case .forgettingTheDevice:
          // Goes with the device, unless that has another token by then.
          receipts.spool(newest.id, for: device.id, step.payload)
          forget(device)
        case .later(let seconds) where !isOver(newest):
          let delay = Self.delay(after: newest.attempts, notBefore: seconds)
          receipts.retry(newest.id, for: device.id, step.payload, after: delay, because: error)
        default:
          bury(newest, for: device.id, step.payload, because: error)
          continue
        }
      }
      chain.apart.insert(device.id)
    }
  }

  /// Ends a row of one device, a mail, or whatever goes one way only.
  private func judge(_ step: Step, of chain: Chain) {
    let (held, newest) = (chain.holds(step.rows), step.newest)
    guard case .failed(let error, let remedy) = step.outcomes[0] else { return receipts.finish(held) }
    log(error, newest)
    switch remedy {
    case .forgettingTheDevice where step.devices[0] != nil:
      if let device = step.devices[0] { forget(device) }
      receipts.release(held)
    case .later(let seconds) where !isOver(newest):
      receipts.finish(held.dropLast())
      let delay = Self.delay(after: newest.attempts, notBefore: seconds)
      receipts.retry(Held(id: newest.id, lease: chain.lease), step.payload, after: delay, because: error)
    default:
      receipts.finish(held)
      bury(newest, for: newest.device, step.payload, because: error)
      return
    }
    receipts.release(chain.holds(chain.rows))
    chain.rows = []
  }

  private func forget(_ device: Device) {
    gone.insert(device.id)
    receipts.forget(device)
  }

  private func bury(_ row: Item, for device: Device.ID?, _ payload: JSONDocument?, because error: String) {
    receipts.bury(row.id, for: device, payload, because: error)
    logger.error(
      "given up",
      metadata: ["type": "\(row.type)", "id": "\(row.notificationID)", "attempts": "\(row.attempts + 1)"])
  }

  private func log(_ error: String, _ row: Item) {
    logger.warning("a notification was not delivered", metadata: ["type": "\(row.type)", "error": "\(error)"])
  }

  /// Whether nobody needs to be told any more: of an event that has begun.
  private static func isPast(_ row: Item) -> Bool {
    row.type == Notice.Kind.eventReminder.rawValue
      && row.createdAt < Timestamp.now().adding(seconds: -Event.reminderLead)
  }

  private func isOver(_ row: Item) -> Bool {
    row.createdAt < Timestamp.now().adding(seconds: -settings.patience)
  }

  /// Seconds until the next attempt: they double, up to an hour, and no two rows keep step.
  static func delay(after attempts: Int, notBefore seconds: Int?) -> Double {
    let backoff = min(3000, pow(2, Double(attempts))) * Double.random(in: 0.8...1.2)
    return max(backoff, Double(seconds ?? 0) * Double.random(in: 1...1.1))
  }

  // MARK: Writing it down

  /// All that has come together since the last time. Also when the task is cancelled: it would else be sent again.
  func write(_ group: inout TaskGroup<Happening>) {
    isWriting = true
    let (written, database) = (receipts, database)
    receipts = Receipts()
    group.addTask {
      let writing = Task { try await written.write(in: database) }
      switch await writing.result {
      case .success: return .written(written, failure: nil)
      case .failure(let error): return .written(written, failure: error)
      }
    }
  }

  func settle(_ written: Receipts, _ failure: (any Error)?) {
    isWriting = false
    guard let failure else {
      writeFailures = 0
      for row in written.settled where held[row.id] == row.lease { held[row.id] = nil }
      for device in written.gone { gone.remove(device.id) }
      return
    }
    logger.warning("deliveries cannot be noted", metadata: ["error": "\(failure)"])
    // Whoever takes the rows over sends them again.
    if isCutShort {
      receipts = Receipts()
      return
    }
    writeFailures += 1
    let wait: Duration = min(.seconds(2), .milliseconds(50) * (1 << min(writeFailures, 6)))
    writeAt = Instant.now + wait
    var again = written
    again.append(receipts)
    receipts = again
  }
}

extension Push {
  fileprivate init(_ row: NotificationQueue.Item, _ payload: JSONDocument) {
    id = row.notificationID.uuidString.lowercased()
    type = row.type
    subject = row.subject.uuidString.lowercased()
    recipient = row.recipient.description
    self.payload = payload.text
    createdAt = row.createdAt
  }
}
