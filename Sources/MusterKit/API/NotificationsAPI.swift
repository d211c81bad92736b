import Foundation

/// The caller's inbox.
public struct NotificationsAPI: Sendable {
  let caller: APICaller

  /// The inbox, newest first: the collection `notifications`, unless `unread` is true.
  ///
  /// - Parameter unread: leaves out read notifications.
  public func list(
    unread: Bool = false, limit: Int? = nil, cursor: String? = nil
  ) async throws -> Page<InboxItem> {
    try await caller.get(.page(.listNotifications, [("unread", unread ? "true" : nil)], limit: limit, cursor: cursor))
  }

  /// Marks notifications as read. Unknown ids are ignored.
  ///
  /// - Parameter ids: at most 500.
  /// - Returns: the number of unread notifications that are left.
  @discardableResult
  public func markRead(ids: [InboxItem.ID], key: IdempotencyKey = .random()) async throws -> Int {
    try await mark(ReadSome(ids: ids), key)
  }

  /// Marks everything as read that had arrived by a list's stamp.
  ///
  /// - Returns: the number of unread notifications that are left.
  @discardableResult
  public func markRead(before stamp: Stamp, key: IdempotencyKey = .random()) async throws -> Int {
    try await mark(ReadBefore(before: stamp), key)
  }

  /// Marks all notifications as read.
  ///
  /// - Returns: the number of unread notifications that are left.
  @discardableResult
  public func markAllRead(key: IdempotencyKey = .random()) async throws -> Int {
    try await mark(ReadAll(), key)
  }

  /// Which types are sent to the caller's devices: the collection `notificationPreferences`.
  public func preferences() async throws -> NotificationPreferences {
    try await caller.get(.read(.getNotificationPreferences))
  }

  /// Turns types on and off. Types that are absent keep their value.
  ///
  /// - Parameter stamp: that of the preferences that the choice is based on. Without it, the last choice wins.
  /// - Throws: ``MusterError``: `lost-update`; `invalid-fields` for a type that cannot be turned off
  @discardableResult
  public func setPreferences(
    _ preferences: NotificationPreferences, ifStamp stamp: Stamp? = nil, key: IdempotencyKey = .random()
  ) async throws -> NotificationPreferences {
    try await caller.get(
      .write(.setNotificationPreferences, preferences, key: key).basedOn(stamp?.rawValue))
  }

  /// Notifications as they enter the inbox, and which collections change. Connects when it is iterated.
  ///
  /// - Parameter id: the last `id` that was read from an earlier stream, ``NotificationStream/Iterator/lastEventID``;
  ///   `0` for the whole inbox; nil for new items only.
  public func stream(after id: String? = nil) -> NotificationStream {
    NotificationStream(caller: caller, lastEventID: id)
  }

  private func mark(_ body: some Encodable, _ key: IdempotencyKey) async throws -> Int {
    let response: Unread = try await caller.get(.write(.markNotificationsRead, body, key: key))
    return response.unread
  }
}

/// The devices that get the caller's notifications.
public struct DevicesAPI: Sendable {
  let caller: APICaller

  /// The devices of open sessions, newest first.
  public func list(limit: Int? = nil, cursor: String? = nil) async throws -> Page<Device> {
    try await caller.get(.page(.listDevices, limit: limit, cursor: cursor))
  }

  /// Registers a device for this session. Registering the same token again changes nothing.
  ///
  /// - Throws: ``MusterError``: `too-many-devices`, `invalid-fields`
  @discardableResult
  public func register(
    _ registration: DeviceRegistration, key: IdempotencyKey = .random()
  ) async throws -> RegisteredDevice {
    try await caller.get(.write(.registerDevice, registration, key: key))
  }

  /// Removes a device. Logging out also removes the session's devices.
  ///
  /// - Throws: ``MusterError``: `device-not-found`
  public func remove(_ id: Device.ID, key: IdempotencyKey = .random()) async throws {
    try await caller.send(.write(.removeDevice(id), key: key))
  }
}
