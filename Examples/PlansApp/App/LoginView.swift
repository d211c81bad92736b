import SwiftUI
import UIKit

struct LoginView: View {
  let account: Account
  @State private var form = LoginForm()

  var body: some View {
    Form {
      Section {
        TextField("Username or e-mail", text: $form.login)
          .textContentType(.username).textInputAutocapitalization(.never).autocorrectionDisabled()
        SecureField("Password", text: $form.password)
          .textContentType(.password).onSubmit { submit() }
      } footer: {
        if let failure = form.failure { Text(failure).foregroundStyle(.red) }
      }
      Button("Log in") { submit() }.disabled(!form.canSubmit)
    }
    .overlay { if form.isWorking { ProgressView() } }
  }

  private func submit() {
    Task { await form.submit(to: account, device: UIDevice.current.name) }
  }
}
