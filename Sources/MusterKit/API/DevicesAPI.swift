import Foundation

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
