import HTTPServer

/// How much time, how many bytes and how many streams clients may use.
public struct ServiceLimits: Sendable {
  public var connections = ConnectionLimits()
  /// Seconds between two checks whether the files of the certificate have changed.
  public var certificateSeconds = 10.0
  /// Open notification streams per user, and of all users together.
  public var streamsPerUser = 5
  public var streams = 10_000
  /// Seconds after which an idle stream sends a heartbeat.
  public var streamHeartbeat = 15.0
  /// Seconds between two checks of the inboxes of open streams while the database announces new items. Without the
  /// announcements, a process checks more often.
  public var streamCheck = 1.0

  public init() {}
}
