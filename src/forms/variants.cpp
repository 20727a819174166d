// The copies of the std::variants in forms.h, compiled once.

#include <utility>

#include "posenc/forms.h"

namespace posenc {

AdditionSource::AdditionSource() noexcept = default;
AdditionSource::AdditionSource(Waves value) : variant(std::move(value)) {}
AdditionSource::AdditionSource(Rows value) : variant(std::move(value)) {}
AdditionSource::AdditionSource(Lines value) : variant(std::move(value)) {}
AdditionSource::AdditionSource(const AdditionSource& other) = default;
AdditionSource::AdditionSource(AdditionSource&& other) noexcept = default;
AdditionSource& AdditionSource::operator=(const AdditionSource& other) = default;
AdditionSource& AdditionSource::operator=(AdditionSource&& other) noexcept = default;
AdditionSource::~AdditionSource() = default;

BiasSource::BiasSource() noexcept = default;
BiasSource::BiasSource(const BiasSource& other) = default;
BiasSource::BiasSource(BiasSource&& other) noexcept = default;
BiasSource& BiasSource::operator=(const BiasSource& other) = default;
BiasSource& BiasSource::operator=(BiasSource&& other) noexcept = default;
BiasSource::~BiasSource() = default;

Form::Form() noexcept = default;
Form::Form(Nothing value) : variant(std::move(value)) {}
Form::Form(Addition value) : variant(std::move(value)) {}
Form::Form(Rotation value) : variant(std::move(value)) {}
Form::Form(Bias value) : variant(std::move(value)) {}
Form::Form(const Form& other) = default;
Form::Form(Form&& other) noexcept = default;
Form& Form::operator=(const Form& other) = default;
Form& Form::operator=(Form&& other) noexcept = default;
Form::~Form() = default;

}  // namespace posenc
