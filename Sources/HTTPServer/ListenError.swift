/// The reason why the server cannot listen, as one line for the operator.
public struct ListenError: Error, CustomStringConvertible {
  public let description: String

  public init(description: String) {
    self.description = description
  }
}
