import Foundation

/// The outcomes of all queues, until they are written: collected, being written, or collected again because the write
/// failed. Decides only; see ``DeliveryState``.
struct OutcomeLedger: Sendable {
  typealias Instant = ContinuousClock.Instant

  private var collected: [Acknowledgements]
  private var beingWritten: [Acknowledgements]
  private let none: [Acknowledgements]
  /// Devices that their providers no longer know, and those of them that are being forgotten.
  private var gone: [Device] = []
  private var beingForgotten: [Device] = []
  private var isWriting = false
  /// By queue, the rows whose deletion a claim in flight may not have seen.
  private var finished: [Set<Int64>]
  private(set) var failures = 0
  /// Whether outcomes were lost.
  private(set) var isIncomplete = false
  /// Nil: at once.
  private(set) var writeAt: Instant?

  init(queues: Int) {
    none = Array(repeating: Acknowledgements(), count: queues)
    (collected, beingWritten) = (none, none)
    finished = Array(repeating: [], count: queues)
  }

  /// The outcomes that were collected for a queue.
  subscript(queue: Int) -> Acknowledgements {
    get { collected[queue] }
    _modify { yield &collected[queue] }
  }

  mutating func forget(_ device: Device) { gone.append(device) }

  /// The outcomes of a queue that are not written.
  func count(of queue: Int) -> Int { collected[queue].count + beingWritten[queue].count }

  func leases(of queue: Int) -> [LeasedRow.Lease] { collected[queue].leases + beingWritten[queue].leases }

  /// Whether everything is written.
  var isEmpty: Bool { !isWriting && gone.isEmpty && collected.allSatisfy(\.isEmpty) }

  var canBeWritten: Bool { !isWriting && !isEmpty }

  /// The finished rows that a claim which has just ended may have claimed again.
  mutating func takeFinished(of queue: Int) -> Set<Int64> {
    defer { finished[queue] = Set(beingWritten[queue].finished) }
    return finished[queue].union(collected[queue].finished)
  }

  // MARK: Writing

  mutating func beginWrite() -> (outcomes: [Acknowledgements], gone: [Device]) {
    isWriting = true
    (beingWritten, collected) = (collected, none)
    (beingForgotten, gone) = (gone, [])
    for queue in finished.indices { finished[queue].formUnion(beingWritten[queue].finished) }
    return (beingWritten, beingForgotten)
  }

  /// - Parameter claiming: by queue, whether a claim is in flight.
  mutating func endWrite(claiming: [Bool]) {
    isWriting = false
    (beingWritten, beingForgotten) = (none, [])
    failures = 0
    writeAt = nil
    for queue in finished.indices where !claiming[queue] { finished[queue] = [] }
  }

  /// After a failed write.
  mutating func repeatWrite(at now: Instant) {
    isWriting = false
    failures += 1
    writeAt = now + Backoff.pause(after: failures)
    collected = zip(beingWritten, collected).map { $0 + $1 }
    gone = beingForgotten + gone
    (beingWritten, beingForgotten) = (none, [])
  }

  /// After a failed write that is not repeated. What was collected meanwhile is still to be written.
  mutating func abandon() {
    isWriting = false
    isIncomplete = true
    (beingWritten, beingForgotten) = (none, [])
  }
}
