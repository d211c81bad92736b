import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Carries requests with `URLSession`.
public final class URLSessionTransport: Transport {
  public init() {}

  public func send(_ request: TransportRequest) async throws -> TransportResponse {
    throw MusterError.unreachable("not there yet")
  }

  public func open(_ request: TransportRequest) async throws -> TransportStream {
    throw MusterError.unreachable("not there yet")
  }
}
