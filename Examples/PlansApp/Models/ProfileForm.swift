import Foundation
import MusterKit
import Observation

/// The user's profile, which also changes without a network, and the end of the account.
@MainActor @Observable
final class ProfileForm {
  var displayName: String
  var bio: String
  /// The password, or the code from the mail.
  var proof = ""
  private(set) var isCodeSent = false
  private(set) var failure: String?
  private let before: User?
  private let account: Account
  private let home: Home

  init(of account: Account, in home: Home) {
    (self.account, self.home, before) = (account, home, home.store.profile.value)
    (displayName, bio) = (before?.displayName ?? "", before?.bio ?? "")
  }

  var username: String { before?.username ?? "" }
  var canSave: Bool { before != nil && !name.isEmpty && edit != ProfileEdit() }
  func save() async -> Bool { await home.perform(.editProfile(edit)) }

  private var name: String { displayName.trimmingCharacters(in: .whitespaces) }
  /// Only what the user has changed.
  private var edit: ProfileEdit {
    ProfileEdit(
      displayName: name == before?.displayName ? nil : name,
      bio: bio == before?.bio ?? "" ? .keep : bio.isEmpty ? .clear : .set(bio))
  }

  /// Users without a password prove who they are with a code that is mailed to them.
  var needsCode: Bool { before?.hasPassword == false }
  var canDelete: Bool { !proof.isEmpty }

  /// Before the account is deleted.
  var deletionNote: String {
    let note = "Your events, answers and friends are deleted at once, and cannot be restored."
    switch home.unsent {
    case 0: return note
    case 1: return "\(note) One change was never sent, and is lost."
    case let number: return "\(note) \(number) changes were never sent, and are lost."
    }
  }

  func sendCode() async {
    failure = await Home.failure {
      try await home.client.auth.requestOwnCode(email: before?.email ?? "")
      isCodeSent = true
    }
  }

  func deleteAccount() async {
    failure = await Home.failure { try await account.delete(needsCode ? .code(proof) : .password(proof)) }
    proof = ""
  }
}
