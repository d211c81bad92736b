/// The release of Muster that this program is.
public enum Release {
  /// The only definition of the version. A test compares the OpenAPI document with it.
  public static let version = "0.1.0"
}
