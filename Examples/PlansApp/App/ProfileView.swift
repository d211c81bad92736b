import MusterKit
import SwiftUI

/// The user's own name and text, the way out, and the end of the account.
struct ProfileView: View {
  let account: Account
  @State private var form: ProfileForm
  @State private var isDeleting = false
  @Environment(\.dismiss) private var dismiss

  init(account: Account, home: Home) {
    self.account = account
    _form = State(initialValue: ProfileForm(of: account, in: home))
  }

  var body: some View {
    NavigationStack {
      Form {
        Section {
          LabeledContent("Username", value: form.username)
          TextField("Name", text: $form.displayName)
          TextField("About you", text: $form.bio, axis: .vertical)
        }
        Button("Log out") {
          dismiss()
          Task { await account.logOut() }
        }
        Toggle("Delete the account", isOn: $isDeleting)
        if isDeleting { deletion }
      }
      .navigationTitle("Profile")
      .toolbar {
        ToolbarItem(placement: .cancellationAction) { Button("Close") { dismiss() } }
        ToolbarItem(placement: .confirmationAction) {
          Button("Save") { Task { if await form.save() { dismiss() } } }.disabled(!form.canSave)
        }
      }
    }
  }

  private var deletion: some View {
    Section {
      if form.needsCode, !form.isCodeSent {
        Button("Mail me a code") { Task { await form.sendCode() } }
      } else {
        SecureField(form.needsCode ? "Code from the mail" : "Password", text: $form.proof)
        Button("Delete now", role: .destructive) { Task { await form.deleteAccount() } }.disabled(!form.canDelete)
      }
    } footer: {
      Text(form.failure ?? form.deletionNote)
    }
  }
}
