import AuthenticationServices
import SwiftUI
import UIKit

struct SignInView: View {
  let account: Account
  @State private var form = SignInForm()
  @Environment(\.colorScheme) private var scheme

  var body: some View {
    Form {
      Picker("Purpose", selection: $form.purpose) {
        ForEach(SignInForm.Purpose.allCases, id: \.self) { Text($0.rawValue) }
      }
      .pickerStyle(.segmented)
      Section {
        TextField(form.purpose == .logIn ? "Username or e-mail" : "Username", text: $form.username)
          .textContentType(.username)
        if form.purpose == .register {
          TextField("E-mail", text: $form.email).textContentType(.emailAddress).keyboardType(.emailAddress)
        }
        SecureField("Password", text: $form.password)
          .textContentType(form.purpose == .logIn ? .password : .newPassword).onSubmit { submit() }
      } footer: {
        if let failure = form.failure { Text(failure).foregroundStyle(.red) }
      }
      .textInputAutocapitalization(.never).autocorrectionDisabled()
      Button(form.purpose.rawValue) { submit() }.disabled(!form.canSubmit)
      SignInWithAppleButton { request in
        request.requestedScopes = [.fullName, .email]
        request.nonce = form.makeNonce()
      } onCompletion: { result in
        finish(result)
      }
      .signInWithAppleButtonStyle(scheme == .dark ? .white : .black)
      .frame(height: 44)
    }
    .overlay { if form.isWorking { ProgressView() } }
  }

  private func submit() {
    Task { await form.submit(to: account, device: UIDevice.current.name) }
  }

  private func finish(_ result: Result<ASAuthorization, any Error>) {
    if case .failure(let error as ASAuthorizationError) = result, error.code == .canceled { return }
    let apple = (try? result.get())?.credential as? ASAuthorizationAppleIDCredential
    Task {
      await form.signInWithApple(
        apple?.identityToken, code: apple?.authorizationCode, name: apple?.fullName, to: account,
        device: UIDevice.current.name)
    }
  }
}
