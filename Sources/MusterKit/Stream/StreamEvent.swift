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
