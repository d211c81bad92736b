// The declarations of Apple's frameworks that PlansApp's views and the guide for iOS use, without their behavior. Written
// by hand from Apple's documentation. They show that the views fit the models, and that both are sound under strict
// concurrency; they cannot show that the views fit Apple's frameworks.

@_exported import Foundation
@_exported import Observation

@MainActor @preconcurrency public protocol View {
  associatedtype Body: View
  @ViewBuilder @MainActor var body: Body { get }
}

extension Never: View { public var body: Never { stub() } }

public protocol Primitive: View where Body == Never {}
extension Primitive { public var body: Never { stub() } }

/// The body of all declarations: they are compiled, and never run.
func stub() -> Never { fatalError("This is only a declaration.") }

public struct EmptyView: Primitive { public init() {} }
public struct TupleView<Content>: Primitive {}
public struct ConditionalView<First: View, Second: View>: Primitive {}
extension Optional: View where Wrapped: View { public var body: Never { stub() } }

@resultBuilder @MainActor public struct ViewBuilder {
  public static func buildExpression<C: View>(_ content: C) -> C { content }
  public static func buildBlock() -> EmptyView { stub() }
  public static func buildBlock<C: View>(_ content: C) -> C { content }
  public static func buildBlock<each C: View>(_ content: repeat each C) -> TupleView<(repeat each C)> { stub() }
  public static func buildIf<C: View>(_ content: C?) -> C? { content }
  public static func buildEither<A: View, B: View>(first: A) -> ConditionalView<A, B> { stub() }
  public static func buildEither<A: View, B: View>(second: B) -> ConditionalView<A, B> { stub() }
}

public struct LocalizedStringKey: ExpressibleByStringInterpolation { public init(stringLiteral: String) {} }

@propertyWrapper @MainActor public struct State<Value> {
  public init(initialValue: Value) {}
  public init(wrappedValue: Value) {}
  public var wrappedValue: Value {
    get { stub() }
    nonmutating set {}
  }
  public var projectedValue: Binding<Value> { stub() }
}

@propertyWrapper @dynamicMemberLookup public struct Binding<Value> {
  public init?(_ base: Binding<Value?>) {}
  public var wrappedValue: Value {
    get { stub() }
    nonmutating set {}
  }
  public var projectedValue: Binding<Value> { self }
  public subscript<S>(dynamicMember path: WritableKeyPath<Value, S>) -> Binding<S> { stub() }
}

@propertyWrapper @dynamicMemberLookup public struct Bindable<Value> {
  public init(wrappedValue: Value) {}
  public var wrappedValue: Value {
    get { stub() }
    set {}
  }
  public var projectedValue: Bindable<Value> { self }
  public subscript<S>(dynamicMember path: ReferenceWritableKeyPath<Value, S>) -> Binding<S> where Value: AnyObject {
    stub()
  }
}

public struct EnvironmentValues {
  public var scenePhase: ScenePhase { stub() }
  public var colorScheme: ColorScheme { stub() }
  public var timeZone: TimeZone {
    get { stub() }
    set {}
  }
  public var dismiss: DismissAction { stub() }
}

public struct DismissAction { @MainActor public func callAsFunction() {} }
public enum ScenePhase { case background, inactive, active }
public enum ColorScheme { case light, dark }

@propertyWrapper public struct Environment<Value> {
  public init(_ path: KeyPath<EnvironmentValues, Value>) {}
  public var wrappedValue: Value { stub() }
}

public struct Font: Sendable {
  public enum Weight: Sendable { case regular, semibold }
  public static let headline = Font(), subheadline = Font(), footnote = Font(), caption = Font()
}

public protocol ShapeStyle: Sendable {}
public struct Color: ShapeStyle {}
public struct OtherStyle: ShapeStyle {}
extension ShapeStyle where Self == Color {
  public static var red: Color { stub() }
  public static var green: Color { stub() }
}
extension ShapeStyle where Self == OtherStyle {
  public static var secondary: OtherStyle { stub() }
  public static var background: OtherStyle { stub() }
}

public struct Text: Primitive {
  public enum DateStyle { case relative }
  public init(_ key: LocalizedStringKey) {}
  @_disfavoredOverload public init(_ content: some StringProtocol) {}
  public init(_ date: Date, style: DateStyle) {}
  public init<F: FormatStyle>(_ input: F.FormatInput, format: F)
  where F.FormatInput: Equatable, F.FormatOutput == String {}
  public func strikethrough(_ isActive: Bool = true) -> Text { self }
  public func fontWeight(_ weight: Font.Weight?) -> Text { self }
  public func font(_ font: Font?) -> Text { self }
}

public struct Image: Primitive { public init(systemName: String) {} }
public struct Spacer: Primitive { public init() {} }
public struct ProgressView: Primitive { public init() {} }
public enum HorizontalAlignment { case leading, center }

public struct VStack<C: View>: Primitive {
  public init(alignment: HorizontalAlignment = .center, @ViewBuilder content: () -> C) {}
}

public struct HStack<C: View>: Primitive { public init(@ViewBuilder content: () -> C) {} }
public struct Form<C: View>: Primitive { public init(@ViewBuilder content: () -> C) {} }

public struct List<C: View>: Primitive {
  public init(@ViewBuilder content: () -> C) {}
  public init<D: RandomAccessCollection, R: View>(_ data: D, @ViewBuilder rowContent: @escaping (D.Element) -> R)
  where C == ForEach<D, R>, D.Element: Identifiable {}
}

public struct ForEach<D: RandomAccessCollection, C: View>: Primitive {
  public init(_ data: D, @ViewBuilder content: @escaping (D.Element) -> C) where D.Element: Identifiable {}
  public init<ID: Hashable>(
    _ data: D, id: KeyPath<D.Element, ID>, @ViewBuilder content: @escaping (D.Element) -> C
  ) {}
}

public struct Section<Parent: View, C: View, Footer: View>: Primitive {
  public init(@ViewBuilder content: () -> C, @ViewBuilder header: () -> Parent, @ViewBuilder footer: () -> Footer) {}
}
extension Section where Parent == Text, Footer == EmptyView {
  public init(_ key: LocalizedStringKey, @ViewBuilder content: () -> C) {}
  @_disfavoredOverload public init(_ title: some StringProtocol, @ViewBuilder content: () -> C) {}
}
extension Section where Parent == EmptyView {
  public init(@ViewBuilder content: () -> C, @ViewBuilder footer: () -> Footer) {}
}
extension Section where Parent == EmptyView, Footer == EmptyView { public init(@ViewBuilder content: () -> C) {} }

public enum ButtonRole { case destructive, cancel }

public struct Button<L: View>: Primitive {
  public init(action: @escaping @MainActor () -> Void, @ViewBuilder label: () -> L) {}
}
extension Button where L == Text {
  public init(_ key: LocalizedStringKey, role: ButtonRole? = nil, action: @escaping @MainActor () -> Void) {}
  @_disfavoredOverload
  public init(_ title: some StringProtocol, role: ButtonRole? = nil, action: @escaping @MainActor () -> Void) {}
}
public struct Menu<C: View>: Primitive {
  public init(_ key: LocalizedStringKey, systemImage: String, @ViewBuilder content: () -> C) {}
}

extension Button where L == Label {
  public init(_ key: LocalizedStringKey, systemImage: String, action: @escaping @MainActor () -> Void) {}
}

public struct Label: Primitive { public init(_ key: LocalizedStringKey, systemImage: String) {} }
public struct LabeledContent: Primitive { public init(_ key: LocalizedStringKey, value: some StringProtocol) {} }
public struct Link: Primitive { public init(_ title: some StringProtocol, destination: URL) {} }
public struct ShareLink: Primitive { public init(item: URL) {} }
public enum Axis { case vertical }

public struct TextField: Primitive {
  public init(_ key: LocalizedStringKey, text: Binding<String>) {}
  public init(_ key: LocalizedStringKey, text: Binding<String>, axis: Axis) {}
  @_disfavoredOverload public init(_ title: some StringProtocol, text: Binding<String>) {}
}

public struct SecureField: Primitive {
  public init(_ key: LocalizedStringKey, text: Binding<String>) {}
  @_disfavoredOverload public init(_ title: some StringProtocol, text: Binding<String>) {}
}

public struct Toggle: Primitive {
  public init(_ key: LocalizedStringKey, isOn: Binding<Bool>) {}
  @_disfavoredOverload public init(_ title: some StringProtocol, isOn: Binding<Bool>) {}
}

public struct DatePicker: Primitive { public init(_ key: LocalizedStringKey, selection: Binding<Date>) {} }

public struct Stepper: Primitive {
  public init<V: Strideable>(_ key: LocalizedStringKey, value: Binding<V>, in bounds: ClosedRange<V>) {}
}

public struct Picker<Selection: Hashable, C: View>: Primitive {
  public init(_ key: LocalizedStringKey, selection: Binding<Selection>, @ViewBuilder content: () -> C) {}
}

public enum PickerStyle { case segmented, navigationLink }
public enum ButtonStyle { case borderless }

public struct NavigationStack<Path, C: View>: Primitive {
  public init(@ViewBuilder root: () -> C) where Path == Never {}
  public init(path: Binding<Path>, @ViewBuilder root: () -> C)
  where Path: MutableCollection & RandomAccessCollection & RangeReplaceableCollection, Path.Element: Hashable {}
}

public struct NavigationLink<L: View>: Primitive {
  public init<Value: Hashable>(value: Value?, @ViewBuilder label: () -> L) {}
}

public struct TabView<Selection: Hashable, C: View>: Primitive {
  public init(selection: Binding<Selection>?, @ViewBuilder content: () -> C) {}
}

public struct ContentUnavailableView: Primitive {
  public init(_ key: LocalizedStringKey, systemImage: String) {}
  @_disfavoredOverload public init(_ title: some StringProtocol, systemImage: String) {}
  public static func search(text: String) -> ContentUnavailableView { stub() }
}

public enum ToolbarItemPlacement { case cancellationAction, confirmationAction }
public struct ToolbarItem<C: View>: Primitive {
  public init(placement: ToolbarItemPlacement, @ViewBuilder content: () -> C) {}
}

public struct AccessibilityTraits: OptionSet, Sendable {
  public let rawValue: Int
  public init(rawValue: Int) { self.rawValue = rawValue }
  public static let isSelected = AccessibilityTraits(rawValue: 1)
}

public enum Visibility { case visible }
public enum TextContentType { case username, emailAddress, password, newPassword }
public enum KeyboardType { case emailAddress }
public enum TextInputAutocapitalization { case never }
public enum BackgroundPlacement { case widget }

extension View {
  public typealias AsyncAction = @Sendable @isolated(any) () async -> Void

  public func font(_ font: Font?) -> some View { self }
  public func foregroundStyle(_ style: some ShapeStyle) -> some View { self }
  public func tint(_ color: Color?) -> some View { self }
  public func frame(height: Double) -> some View { self }
  public func id(_ id: some Hashable) -> some View { self }
  public func onChange(
    of value: some Equatable, initial: Bool = false, _ action: @escaping @MainActor () -> Void
  ) -> some View { self }
  public func task(_ action: @escaping AsyncAction) -> some View { self }
  public func task(id: some Equatable, _ action: @escaping AsyncAction) -> some View { self }
  public func refreshable(action: @escaping AsyncAction) -> some View { self }
  public func onOpenURL(perform action: @escaping @MainActor (URL) -> Void) -> some View { self }
  public func onSubmit(_ action: @escaping @MainActor () -> Void) -> some View { self }
  public func navigationTitle(_ key: LocalizedStringKey) -> some View { self }
  @_disfavoredOverload public func navigationTitle(_ title: some StringProtocol) -> some View { self }
  public func navigationDestination<D: Hashable>(
    for data: D.Type, @ViewBuilder destination: @escaping (D) -> some View
  ) -> some View { self }
  public func toolbar(@ViewBuilder content: () -> some View) -> some View { self }
  public func overlay(@ViewBuilder content: () -> some View) -> some View { self }
  public func sheet(isPresented: Binding<Bool>, @ViewBuilder content: @escaping () -> some View) -> some View { self }
  public func sheet<Item: Identifiable>(
    item: Binding<Item?>, @ViewBuilder content: @escaping (Item) -> some View
  ) -> some View { self }
  public func contextMenu(@ViewBuilder menuItems: () -> some View) -> some View { self }
  public func alert(
    _ title: some StringProtocol, isPresented: Binding<Bool>, @ViewBuilder actions: () -> some View
  ) -> some View { self }
  public func confirmationDialog<T>(
    _ title: some StringProtocol, isPresented: Binding<Bool>, titleVisibility: Visibility, presenting data: T?,
    @ViewBuilder actions: (T) -> some View, @ViewBuilder message: (T) -> some View
  ) -> some View { self }
  public func tabItem(@ViewBuilder _ label: () -> some View) -> some View { self }
  public func tag(_ tag: some Hashable) -> some View { self }
  public func badge(_ count: Int) -> some View { self }
  public func swipeActions(@ViewBuilder content: () -> some View) -> some View { self }
  public func searchable(text: Binding<String>, prompt: LocalizedStringKey) -> some View { self }
  public func disabled(_ isDisabled: Bool) -> some View { self }
  public func pickerStyle(_ style: PickerStyle) -> some View { self }
  public func buttonStyle(_ style: ButtonStyle) -> some View { self }
  public func environment<V>(_ path: WritableKeyPath<EnvironmentValues, V>, _ value: V) -> some View { self }
  public func textContentType(_ type: TextContentType?) -> some View { self }
  public func keyboardType(_ type: KeyboardType) -> some View { self }
  public func textInputAutocapitalization(_ kind: TextInputAutocapitalization?) -> some View { self }
  public func autocorrectionDisabled(_ isDisabled: Bool = true) -> some View { self }
  public func accessibilityHidden(_ isHidden: Bool) -> some View { self }
  public func accessibilityLabel(_ label: some StringProtocol) -> some View { self }
  public func accessibilityValue(_ key: LocalizedStringKey) -> some View { self }
  public func accessibilityAddTraits(_ traits: AccessibilityTraits) -> some View { self }
  public func widgetURL(_ url: URL?) -> some View { self }
  public func containerBackground(_ style: some ShapeStyle, for place: BackgroundPlacement) -> some View { self }
  public func signInWithAppleButtonStyle(_ style: SignInWithAppleButton.Style) -> some View { self }
}

@MainActor @preconcurrency public protocol Scene {
  associatedtype Body: Scene
  @MainActor var body: Body { get }
}

extension Never: Scene {}

public struct WindowGroup<C: View>: Scene {
  public init(@ViewBuilder content: () -> C) {}
  public var body: Never { stub() }
}

@MainActor @preconcurrency public protocol App {
  associatedtype Body: Scene
  @MainActor var body: Body { get }
  init()
}

extension App { public static func main() {} }

@propertyWrapper @MainActor public struct UIApplicationDelegateAdaptor<Delegate> {
  public init(_ type: Delegate.Type) {}
  public var wrappedValue: Delegate { stub() }
}

extension Scene {
  public func onChange(of value: some Equatable, _ action: @escaping @MainActor () -> Void) -> some Scene { self }
  public func backgroundTask(_ task: BackgroundTask, action: @escaping @Sendable () async -> Void) -> some Scene {
    self
  }
}
