import Foundation
import Postgres

extension Delivery {
  /// What child tasks come back with.
  enum Happening: Sendable {
    case claimed(Claimed)
    case sent(Job, Outcome)
    case written(Receipts, failure: (any Error)?)
    case renewed(Renewed)
    case alarm(Instant)
    case woken
    case stopping
    case nothing
  }

  struct Claimed: Sendable {
    let lease: UUID
    let started: Instant
    let isFull: Bool
    let limit: Int
    let wasIdle: Bool
    let result: Result<[[Item]], any Error>
    /// Nil if they are not known.
    let targets: [NotificationQueue.Targets]?
  }

  struct Renewed: Sendable {
    let asked: [Held]
    let started: Instant
    /// Chains of smaller numbers were asked for.
    let before: Int
    let result: Result<Set<Int64>, any Error>
    let waiting: [Int]
    let targets: [NotificationQueue.Targets]?
  }

  enum Outcome: Sendable {
    case delivered
    /// Not begun, or cut short: nobody knows.
    case notTried
    case failed(String, DeliveryFailure.Remedy)
  }

  /// One parcel of a chain's step.
  struct Job: Sendable {
    let chain: Int
    let place: Int
    let device: Device.ID?
    let parcel: Parcel
  }

  final class Chain {
    let number: Int
    let lease: UUID
    /// What its next steps are made of.
    var rows: ArraySlice<Item>
    var targets: NotificationQueue.Targets?
    /// Devices that could not be told, and have rows of their own from there on.
    var apart: Set<Device.ID> = []
    var step: Step?
    /// By when the claim, as far as this worker knows, may have passed to another.
    var isHeldUntil: Instant
    var isLost = false

    init(_ number: Int, _ rows: [Item], lease: UUID, targets: NotificationQueue.Targets?, heldUntil: Instant) {
      self.number = number
      self.rows = rows[...]
      self.lease = lease
      self.targets = targets
      isHeldUntil = heldUntil
    }

    func holds(_ rows: some Sequence<Item>) -> [Held] {
      rows.map { Held(id: $0.id, lease: lease) }
    }

    /// Goes no further than where another worker has taken over, or somebody deletes a row: what is behind is given back.
    func lose(_ lost: Set<Int64>, _ receipts: inout Receipts) {
      if step?.rows.contains(where: { lost.contains($0.id) }) == true { isLost = true }
      guard let place = rows.firstIndex(where: { lost.contains($0.id) }) else { return }
      receipts.release(holds(rows[(place + 1)...]))
      rows = rows[..<place]
    }
  }

  /// A notification on its way to all of its devices. Usually of one row.
  struct Step {
    let rows: [Item]
    let newest: Item
    /// As it is sent, where several rows are one.
    let payload: JSONDocument?
    /// Nil in its place: to no device.
    let devices: [Device?]
    /// Behind something older, or at fault before.
    let spooled: [Device.ID]
    var outcomes: [Outcome]
    var open: Int
  }
}
