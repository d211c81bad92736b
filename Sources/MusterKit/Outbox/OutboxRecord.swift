import Foundation

/// A write on its way, as its file has it. Each step replaces the file, so that a crash leaves the step done or not
/// done.
struct OutboxRecord: Codable, Sendable, Hashable, Identifiable {
  enum State: Codable, Sendable, Hashable {
    /// Not sent, or sent without a response.
    case waiting
    /// The service has carried it out.
    case sent
    case refused(RefusedWrite.Reason)
  }

  /// The number in the files of this version of the app. Raise it with each new ``Write``, and with each other change
  /// that an earlier version cannot read: the earlier version leaves the file alone, and does not report it as damaged.
  static let currentFormat = 2

  var format = currentFormat
  let id: UUID
  /// Writes are sent in this order.
  var sequence: Int
  /// An answer takes over the plus-ones of an earlier one that is left out for it.
  var write: Write
  /// The state that the user saw; once the write is carried out, the state in the response. Nil for writes that need
  /// none, and if the lists did not have it.
  var basis: Basis?
  /// The number of the request whose response had what the user saw; nil if that is not known. See ``RequestCounter``.
  var seenIn: Int?
  /// A number taken when its response had arrived: requests with higher numbers were sent later.
  var carriedOut: Int?
  /// A number taken when it was saved: of two writes, the one that the user made later has the higher one.
  var madeAt: Int?
  /// The same for each attempt, so that the write happens once.
  var key: IdempotencyKey
  let createdAt: Date
  var state = State.waiting
  /// The service's time before the first request with this write that may have reached it without a response. Noted
  /// only if the record ``notesAttempts``.
  var attemptedAt: Date?
  /// The refused write that the user sent again as this one. This one's file hides it. It is gone before this one is
  /// sent, and so never comes back.
  var replaces: ID?

  /// The order of the line. Two processes may have taken the same place.
  static func isBefore(_ one: OutboxRecord, _ other: OutboxRecord) -> Bool {
    (one.sequence, one.id.wire) < (other.sequence, other.id.wire)
  }

  /// Whether the lists show the write as pending.
  var isUnsettled: Bool {
    switch state {
    case .waiting, .sent: true
    case .refused: false
    }
  }
}

/// A write that the lists show, but that they do not prove yet.
public struct PendingWrite: Sendable, Hashable, Identifiable {
  public let id: UUID
  public let write: Write
  /// When the user made it.
  public let createdAt: Date
  /// Whether the service has carried it out, or a later answer counts instead. It stays pending until the lists are
  /// validated.
  public let isSent: Bool
  let key: IdempotencyKey
}

extension PendingWrite {
  init(_ record: OutboxRecord) {
    self.init(
      id: record.id, write: record.write, createdAt: record.createdAt, isSent: record.state == .sent, key: record.key)
  }
}

/// A write that failed or whose outcome is unknown, and that the lists no longer show as pending. Tell the
/// user. Then dismiss it, or send it again with ``MusterStore/sendAgain(_:)``.
public struct RefusedWrite: Sendable, Hashable, Identifiable {
  /// Why a write will not happen, or may not have happened.
  public enum Reason: Codable, Sendable, Hashable {
    /// The service refused it.
    case refused(Problem)
    /// There is something newer than the user saw, from another device, a browser or another host. It did not
    /// happen. Show the user both, the write and this. ``MusterStore/sendAgain(_:)`` replaces the newer state.
    case superseded(by: NewerState)
    /// It was sent, and no response arrived within a day. Perhaps it has happened: the lists show what the service has.
    /// Another attempt might undo what another device has done since. Only writes without a state to compare with get
    /// this reason, such as a block.
    case unknown
    /// It names an event or a request whose own write was refused. It did not happen.
    case withoutSubject
    /// Its file on the device is damaged. Perhaps it has happened. `contents` is the readable beginning of the file, for
    /// developers.
    case damaged(contents: String)
  }

  public let id: UUID
  /// Nil if it cannot be read any more, because its file is damaged.
  public let write: Write?
  /// When the user made it; nil if that cannot be read any more.
  public let createdAt: Date?
  public let reason: Reason

  /// Whether it may have happened.
  public var isUnknown: Bool {
    switch reason {
    case .unknown, .damaged: true
    case .refused, .superseded, .withoutSubject: false
    }
  }

  /// The newer state that was in the way, if the user had seen an older one.
  public var newerState: NewerState? { if case .superseded(let state) = reason { state } else { nil } }
}

extension RefusedWrite {
  init?(_ record: OutboxRecord) {
    guard case .refused(let reason) = record.state else { return nil }
    self.init(id: record.id, write: record.write, createdAt: record.createdAt, reason: reason)
  }
}

/// The file of a write, as far as it can be read.
enum OutboxFile: Sendable {
  case record(OutboxRecord)
  /// It cannot be read now, or a later version of the app has written it. It stays.
  case unreadable
  case damaged(RefusedWrite)

  /// The characters of a damaged file that a refusal shows.
  private static let shownLength = 1000

  /// - Parameter folder: of the outbox.
  init(_ data: Data, id: OutboxRecord.ID, in folder: URL) {
    let decoder = JSONDecoder()
    if let key = OutboxFiles.Folder.key { decoder.userInfo[key] = OutboxFiles.Folder(url: folder) }
    if let format = try? decoder.decode(Format.self, from: data).format, format > OutboxRecord.currentFormat {
      self = .unreadable
    } else if let record = try? decoder.decode(OutboxRecord.self, from: data), record.id == id {
      self = .record(record)
    } else {
      let rest = try? decoder.decode(Rest.self, from: data)
      let contents = String(String(decoding: data, as: UTF8.self).prefix(Self.shownLength))
      self = .damaged(
        RefusedWrite(id: id, write: rest?.write, createdAt: rest?.createdAt, reason: .damaged(contents: contents)))
    }
  }

  private struct Format: Decodable {
    let format: Int
  }

  /// The members of a damaged file that are whole.
  private struct Rest: Decodable {
    let write: Write?
    let createdAt: Date?

    enum CodingKeys: CodingKey { case write, createdAt }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      write = try? container.decode(Write.self, forKey: .write)
      createdAt = try? container.decode(Date.self, forKey: .createdAt)
    }
  }
}
