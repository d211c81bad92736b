import Dispatch
import Foundation

/// Runs an action on Ctrl-C, in place of the end of the process.
final class Interrupt {
  private let source: any DispatchSourceSignal

  init(_ action: @escaping @Sendable () -> Void) {
    signal(SIGINT, SIG_IGN)
    source = DispatchSource.makeSignalSource(signal: SIGINT)
    source.setEventHandler(handler: action)
    source.resume()
  }

  func end() {
    source.cancel()
    signal(SIGINT, SIG_DFL)
  }
}
