/// The release of Muster that this program is.
public enum Release {
  /// Tests compare the version in the OpenAPI document and that of `musterctl` with it.
  public static let version = "0.1.0"
}
