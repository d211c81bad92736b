import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A session's delegate: passes what arrives to the exchange that it belongs to.
final class Exchanges: NSObject, URLSessionDataDelegate {
  private let running = Guarded([Int: Exchange]())

  func begin(_ exchange: Exchange) {
    running.withLock { $0[exchange.task.taskIdentifier] = exchange }
    exchange.task.resume()
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    if let response = response as? HTTPURLResponse { exchange(of: dataTask)?.begin(response) }
    completionHandler(.allow)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    exchange(of: dataTask)?.add(data)
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    let exchange = running.withLock { $0.removeValue(forKey: task.taskIdentifier) }
    exchange?.complete(error)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    completionHandler(nil)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    let space = challenge.protectionSpace
    let methods = [NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTTPDigest]
    // Muster asks for no passwords: let the response come back as it is.
    let isForeign = !space.isProxy() && methods.contains(space.authenticationMethod)
    completionHandler(isForeign ? .rejectProtectionSpace : .performDefaultHandling, nil)
  }

  private func exchange(of task: URLSessionTask) -> Exchange? {
    running.withLock { $0[task.taskIdentifier] }
  }
}
