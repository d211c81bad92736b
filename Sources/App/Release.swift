/// Which Muster this is.
public enum Release {
  /// The only place where it stands; the OpenAPI document is compared with it.
  public static let version = "0.1.0"
}
