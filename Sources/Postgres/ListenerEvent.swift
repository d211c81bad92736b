/// An event on a listening connection.
public enum ListenerEvent: Sendable, Equatable {
  /// A session ran `NOTIFY channel, 'payload'` and committed.
  case notification(channel: String, payload: String)
  /// The connection is new, or was lost for a while. Notifications sent in between were missed. This is also the first
  /// event.
  case mayHaveMissed
}
