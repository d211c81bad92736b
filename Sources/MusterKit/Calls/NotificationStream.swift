import Foundation

/// Notifications as they enter the inbox, and which collections change.
///
/// Connects when it is iterated, and again after each lost connection, without missing a notification. Ends when its
/// task is cancelled. Throws ``MusterError/loggedOut`` when the session ends, and no other error.
///
///     for try await event in client.notifications.stream() {
///       if case .notification(let item) = event { show(item.message) }
///     }
public struct NotificationStream: AsyncSequence, Sendable {
  public typealias Element = StreamEvent

  let caller: APICaller
  let lastEventID: String?
  /// Called when a connection is lost, before the next one is tried.
  var onLoss: (@Sendable () -> Void)?
  /// Called when bytes arrive, also those that are no events.
  var onBytes: (@Sendable () -> Void)?

  public func makeAsyncIterator() -> Iterator {
    Iterator(caller: caller, lastEventID: lastEventID, onLoss: onLoss, onBytes: onBytes)
  }
}

extension NotificationStream {
  /// Reads the stream. Holds one connection at a time.
  public struct Iterator: AsyncIteratorProtocol {
    private struct Connection {
      var chunks: AsyncThrowingStream<Data, any Error>.Iterator
      var parser: EventStreamParser
      /// Whether the stream has begun: see ``StreamEvent/connected``.
      var hasBegun = false
    }

    /// Seconds without a byte, after which the connection is given up. The service sends one every 15 seconds.
    private static let patience = 60.0

    private let caller: APICaller
    private let onLoss: (@Sendable () -> Void)?
    private let onBytes: (@Sendable () -> Void)?
    private var connection: Connection?
    /// Whose notifications these are. Another user's login ends the stream.
    private var user: User.ID?
    private var arrived: [(id: String?, data: String?, event: StreamEvent)] = []
    /// Where the next connection begins.
    private var resumeID: String?
    private var pause = ReconnectPause()
    private var isFirst = true

    /// The `id` of the last event that was returned, to resume from in another stream.
    public private(set) var lastEventID: String?
    /// The JSON of the last event as the service sent it, with members that this release does not know; nil for
    /// ``StreamEvent/connected``.
    public private(set) var lastData: String?

    init(
      caller: APICaller, lastEventID: String?, onLoss: (@Sendable () -> Void)?, onBytes: (@Sendable () -> Void)?
    ) {
      self.caller = caller
      self.onLoss = onLoss
      self.onBytes = onBytes
      self.lastEventID = lastEventID
      resumeID = lastEventID
    }

    public mutating func next() async throws -> StreamEvent? {
      do {
        while arrived.isEmpty {
          try Task.checkCancellation()
          if connection == nil { try await connect() } else { try await read() }
        }
      } catch is CancellationError {
        connection = nil
        return nil
      }
      let (id, data, event) = arrived.removeFirst()
      lastData = data
      lastEventID = id ?? lastEventID
      return event
    }

    private mutating func connect() async throws {
      if !isFirst {
        let retries = caller.sender.retries
        try await retries.sleep(pause.seconds(random: retries.random()))
      }
      isFirst = false
      var call = APICall.read(.streamNotifications)
      call.headers["Last-Event-ID"] = resumeID
      call.timeout = Self.patience
      do {
        user = try user ?? Sender.actingUser ?? caller.credentials.stored()?.user
        let stream = try await Sender.$actingUser.withValue(user) { try await caller.open(call) }
        connection = Connection(
          chunks: stream.chunks.makeAsyncIterator(), parser: EventStreamParser(lastEventID: resumeID))
      } catch let error as MusterError {
        if error == .loggedOut { throw error }
        pause.fail(retryAfter: error.problem?.retryAfter)
        // The service does not accept this id: continue without the missed items.
        if error.problem?.type == .invalidFields { resumeID = nil }
      }
    }

    private mutating func read() async throws {
      guard var open = connection else { return }
      let chunk: Data?
      do {
        chunk = try await open.chunks.next()
      } catch {
        try Task.checkCancellation()
        chunk = nil
      }
      guard let chunk else {
        try Task.checkCancellation()
        if !open.hasBegun { pause.fail(retryAfter: nil) }
        connection = nil
        onLoss?()
        return
      }
      onBytes?()
      let events = open.parser.read(chunk)
      if open.parser.hasBlock {
        resumeID = open.parser.lastEventID
        pause.succeed(retry: open.parser.retry)
        if !open.hasBegun {
          // With the place at which the stream begins, if the service has named it.
          arrived.append((events.first == nil ? resumeID : nil, nil, .connected))
        }
        open.hasBegun = true
      }
      connection = open
      arrived += events.compactMap { event in StreamEvent(event).map { (event.id, event.data, $0) } }
    }
  }
}

extension StreamEvent {
  /// - Returns: nil for an event that this release does not know.
  fileprivate init?(_ event: ServerSentEvent) {
    let decoder = JSONDecoder.muster()
    let data = Data(event.data.utf8)
    switch event.event {
    case "notification":
      guard let item = try? decoder.decode(InboxItem.self, from: data) else { return nil }
      self = .notification(item)
    case "changed":
      guard let stamps = try? decoder.decode([String: Stamp?].self, from: data) else { return nil }
      let known = stamps.compactMap { name, stamp in
        CacheCollection(rawValue: name).flatMap { collection in stamp.map { (collection, $0) } }
      }
      guard !known.isEmpty else { return nil }
      self = .changed(Dictionary(uniqueKeysWithValues: known))
    default: return nil
    }
  }
}

/// How long to wait before a stream connects again.
private struct ReconnectPause: Sendable {
  /// Seconds, unless the service says otherwise.
  static let usual: TimeInterval = 2
  /// Seconds. The maximum of the random part of the wait.
  static let maximumBackoff: TimeInterval = 60
  /// Seconds. The maximum of the wait that the service asks for.
  static let maximumHint: TimeInterval = 300

  private var minimum = usual
  private var failures = 0

  /// Records that bytes arrived.
  ///
  /// - Parameter retry: milliseconds that the stream asks to wait, if it does.
  mutating func succeed(retry: Int?) {
    failures = 0
    minimum = retry.map { min(TimeInterval($0) / 1000, Self.maximumHint) } ?? Self.usual
  }

  /// Records an attempt to connect that failed.
  ///
  /// - Parameter retryAfter: seconds that the service asks to wait, if it does.
  mutating func fail(retryAfter: Int?) {
    failures += 1
    minimum = min(max(Self.usual, TimeInterval(retryAfter ?? 0)), Self.maximumHint)
  }

  /// At least what the service asks for; after failures in a row, longer. Not all clients come back at the same moment.
  ///
  /// - Parameter random: from 0 to 1.
  /// - Returns: seconds.
  func seconds(random: Double) -> TimeInterval {
    // A larger exponent is beyond the limit.
    minimum + random * min(minimum * pow(2, Double(min(failures, 10) - 1)), Self.maximumBackoff)
  }
}

/// An event of the stream, for an open app.
public enum StreamEvent: Sendable, Hashable {
  /// The stream is connected, for the first time or again: its first complete block has arrived. Changes before it may
  /// have been missed: validate.
  case connected
  /// A notification entered the inbox.
  case notification(InboxItem)
  /// Collections have changed. A hint: validate them, and never store these stamps with the items that you have.
  case changed([CacheCollection: Stamp])
}
