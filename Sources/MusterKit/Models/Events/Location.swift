/// A place. It has both coordinates, or neither.
public struct Location: Codable, Sendable, Hashable {
  public var name: String
  /// Degrees, -90 to 90.
  public var latitude: Double?
  /// Degrees, -180 to 180.
  public var longitude: Double?

  public init(name: String, latitude: Double? = nil, longitude: Double? = nil) {
    self.name = name
    self.latitude = latitude
    self.longitude = longitude
  }
}
