#if canImport(Network)
  import Foundation
  import Network

  /// Says when the device gets a network, or another one.
  final class NetworkPath: Sendable {
    private let monitor = Guarded(NWPathMonitor())

    /// - Parameter onReturn: is called when there is a network after there was none, and when the interfaces change.
    init(onReturn: @escaping @Sendable () -> Void) {
      let last = Guarded<NWPath?>(nil)
      let handler: @Sendable (NWPath) -> Void = { path in
        let before = last.withLock { last in
          defer { last = path }
          return last
        }
        // The first one says how things are.
        guard let before, path.status == .satisfied else { return }
        if before.status != .satisfied || before.availableInterfaces != path.availableInterfaces { onReturn() }
      }
      monitor.withLock { monitor in
        monitor.pathUpdateHandler = handler
        monitor.start(queue: DispatchQueue(label: "MusterKit.NetworkPath"))
      }
    }

    deinit { monitor.withLock { $0.cancel() } }
  }
#endif
