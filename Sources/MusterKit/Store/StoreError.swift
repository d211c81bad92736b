import Foundation

/// Why the store cannot take a write or open its folder.
public enum StoreError: Error, Sendable, Hashable {
  /// The folder cannot be read or written, for example because the disk is full. The text is for developers.
  case disk(String)
  /// Another process has been sending writes for a minute.
  case locked
  /// The write needs a password, a code or an identity token, which are not kept on the disk. Call the API.
  case needsReauthentication
  /// The write is about a list that was never read. Refresh first.
  case notLoaded
  /// The refusal was dismissed, or another process has sent the write again.
  case dismissed
  /// ``MusterStore/forgetEverything()`` was called. Make a new store after the next login.
  case forgotten
}

extension StoreError: LocalizedError {
  public var errorDescription: String? {
    switch self {
    case .disk(let reason): "The data cannot be stored: \(reason)"
    case .locked: "Another process is sending changes."
    case .needsReauthentication: "This change needs a connection."
    case .notLoaded: "The list is not loaded yet."
    case .dismissed: "This change was dismissed or sent again before."
    case .forgotten: "You are logged out."
    }
  }
}
